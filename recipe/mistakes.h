#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "recipe/name_hints.h"
#include "recipe/resolve.h"
#include "runtime/user_errors.h"

namespace tutti {

// The mistakes of a recipe that is being resolved.
struct Mistakes {
  const NameHints& hints;
  MistakeCollector all = {};
  std::vector<std::pair<std::string, UserError>> missing = {};  // by the path of the key or section
  std::set<std::string> meant = {};  // paths that misspelt or misplaced names stand for

  // Throws all mistakes. A missing key is not counted if a misspelt name stands for it.
  void throw_all();
};

// Resolves a table as resolve_section does, but notes mistakes; the result is whole if there is none.
Setting resolve_table(const Catalog& catalog, const Setting& given, const SectionOrigin& origin,
                      Mistakes& mistakes);

}  // namespace tutti
