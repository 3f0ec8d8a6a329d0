#pragma once

#include <cstdint>
#include <string>

namespace tutti {

// Uncompresses the file `from`, by "zstd" or "gz", to the file `to` of `bytes` bytes. Throws UserError,
// without the file's name, if the data are damaged or of another length; OperatingError if `to` cannot be
// written.
void uncompress_file(const std::string& from, const std::string& compression, uint64_t bytes,
                     const std::string& to);

}  // namespace tutti
