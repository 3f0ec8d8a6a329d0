#include "cli/new_file.h"

#include <filesystem>
#include <span>

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
    FreshFile fresh(disk, path);
    const auto file = disk.open(fresh.name(), /*truncate=*/true);
    file->append(std::as_bytes(std::span(text)));
    file->close();
    fresh.commit();
  } catch (const OperatingError& error) {
    throw UserError(error.what());
  }
}

}  // namespace tutti
