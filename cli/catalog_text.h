#pragma once

#include <span>
#include <string>

#include "cli/guides.h"
#include "job/names/composer_names.h"
#include "recipe/catalog.h"

namespace tutti {

// The output of `tutti list WHAT`: a line per kind of a plural noun ("models"); for "" all nouns with their
// kinds. Throws UserError for an unknown noun.
std::string list_text(std::span<const Catalog> catalogs, const std::string& what);

// The output of `tutti explain NAME`: each section, kind or key of that name; else the entries about that
// topic. Throws UserError that suggests the nearest name.
std::string explain_text(std::span<const Catalog> catalogs, const std::string& name);

// The same, followed by the matching Composer names; with the guide for the word, if any.
std::string explain_text(std::span<const Catalog> catalogs, std::span<const ComposerName> composer,
                         const std::string& name, std::span<const Guide> guides = {});

// The text of a place: "[train]", "[train] grad_accum", "[optimizer] kind = \"sgd\"", "metric MIoU", or
// "seed" for the top level; "" if unknown.
std::string place_text(std::span<const Catalog> catalogs, const std::string& place);

}  // namespace tutti
