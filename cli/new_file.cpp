#include "cli/new_file.h"

#include <filesystem>

#include "io/replaced_file.h"
#include "runtime/disk.h"
#include "runtime/error.h"

namespace tutti {

void write_new(const std::string& path, const std::string& text, bool overwrite) {
  std::error_code ignored;
  if (!overwrite && std::filesystem::exists(std::filesystem::symlink_status(path, ignored)))
    throw UserError({path}, "exists already; --force overwrites it, --out names another file");
  try {
    PosixDisk disk;
    replace_file(disk, path, text);
  } catch (const OperatingError& error) {
    throw UserError(error.what());
  }
}

}  // namespace tutti
