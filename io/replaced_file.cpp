#include "io/replaced_file.h"

#include <span>

namespace tutti {

void replace_file(Disk& disk, const std::string& path, std::string_view bytes) {
  const std::string fresh = path + ".new";
  const auto file = disk.open(fresh, /*truncate=*/true);
  file->append(std::as_bytes(std::span(bytes)));
  file->sync();
  file->close();
  disk.rename(fresh, path);
}

}  // namespace tutti
