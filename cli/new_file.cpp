#include "cli/new_file.h"

#include <filesystem>
#include <fstream>

#include "runtime/error.h"

namespace tutti {

void write_new(const std::string& path, const std::string& text, bool overwrite) {
  std::error_code ignored;
  if (!overwrite && std::filesystem::exists(std::filesystem::symlink_status(path, ignored)))
    throw UserError({path}, "exists already; --force overwrites it, --out names another file");
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw UserError({path}, "cannot be written");
}

}  // namespace tutti
