#include "data/readers/opened.h"

#include <glob.h>

namespace tutti {

std::vector<std::string> files_of(const Setting& path) {
  std::vector<std::string> files;
  glob_t found{};
  if (glob(path.text().c_str(), 0, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (files.empty()) path.fail("no such file");
  return files;
}

}  // namespace tutti
