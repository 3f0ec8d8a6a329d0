#pragma once

#include <span>
#include <string>

#include "cli/guides.h"
#include "recipe/catalog.h"
#include "recipe/foreign_name.h"

namespace tutti {

// The output of `tutti list WHAT`: a line per kind of a plural noun ("models"); for "" all nouns with their
// kinds. Throws UserError for an unknown noun.
std::string list_text(std::span<const Catalog> catalogs, const std::string& what);

// The output of `tutti explain NAME`: each section, kind or key of that name; else the entries about that
// topic. Throws UserError that suggests the nearest name.
std::string explain_text(std::span<const Catalog> catalogs, const std::string& name);

// The same, followed by the matching names of other programs and the guide for the word.
std::string explain_text(std::span<const Catalog> catalogs, std::span<const ForeignName> foreign,
                         const std::string& name, std::span<const Guide> guides = {});

// The text of a place: "[train]", "[train] grad_accum", "[optimizer] kind = \"sgd\"", "metric MIoU", or
// "seed" for the top level; "" if unknown.
std::string place_text(std::span<const Catalog> catalogs, const std::string& place);

}  // namespace tutti
