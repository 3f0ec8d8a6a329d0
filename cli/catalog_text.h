#pragma once

#include <span>
#include <string>

#include "cli/composer_names.h"
#include "recipe/catalog.h"

namespace tutti {

// What `tutti list WHAT` prints: a line for each kind with a plural noun ("models"); "" = every noun with its
// kinds. Throws UserError for a noun that there is not.
std::string list_text(std::span<const Catalog> catalogs, const std::string& what);

// What `tutti explain NAME` prints: the section, kind or key of that name, wherever it occurs. Throws
// UserError that suggests the nearest name.
std::string explain_text(std::span<const Catalog> catalogs, const std::string& name);

// The same, and what `composer` says of the name: first what the thing is here, then the catalogs' own text.
std::string explain_text(std::span<const Catalog> catalogs, std::span<const ComposerName> composer,
                         const std::string& name);

// What the catalogs say of a place, which is written as `explain` does: "[train]", "[train] grad_accum",
// "[optimizer] kind = \"sgd\"", "metric MIoU", "seed" of the top level. "" where there is none.
std::string place_text(std::span<const Catalog> catalogs, const std::string& place);

}  // namespace tutti
