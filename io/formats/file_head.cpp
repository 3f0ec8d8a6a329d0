#include "io/formats/file_head.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "runtime/error.h"
#include "runtime/regular_file.h"

namespace tutti {

std::vector<uint8_t> file_head(const std::string& path, std::size_t bytes) {
  if (const std::string problem = RegularFile(path).problem(); !problem.empty())
    throw UserError(path + ": " + problem);
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw UserError({path}, std::strerror(errno));
  std::vector<uint8_t> head(bytes);
  const int count = gzread(file.get(), head.data(), static_cast<unsigned>(bytes));
  if (count < 0) throw UserError({path}, "cannot be read, or is no gzip file after all");
  head.resize(static_cast<std::size_t>(count));
  return head;
}

}  // namespace tutti
