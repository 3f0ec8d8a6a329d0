#include "data/readers/opened.h"

#include <glob.h>

namespace tutti {

std::vector<std::string> globbed(const std::string& pattern) {
  std::vector<std::string> files;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return files;
}

std::vector<std::string> files_of(const Setting& path) {
  std::vector<std::string> files = globbed(path.text());
  if (files.empty()) path.fail("no such file");
  return files;
}

ArrayNames array_names(const Setting& key) {
  ArrayNames names;
  if (!key.is_table())
    for (const std::string& name : key.texts()) names.emplace_back(name, name);
  else
    for (const auto& [name, stored] : key.table()) names.emplace_back(name, stored.text());
  return names;
}

}  // namespace tutti
