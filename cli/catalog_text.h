#pragma once

#include <span>
#include <string>

#include "runtime/catalog.h"

namespace tutti {

// What `tutti list WHAT` prints: a line for each kind with a plural noun ("models"); "" = every noun with its
// kinds. Throws UserError for a noun that there is not.
std::string list_text(std::span<const Catalog> catalogs, const std::string& what);

// What `tutti explain NAME` prints: the section, kind or key of that name, wherever it occurs. Throws
// UserError that suggests the nearest name.
std::string explain_text(std::span<const Catalog> catalogs, const std::string& name);

}  // namespace tutti
