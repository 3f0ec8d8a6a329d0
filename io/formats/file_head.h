#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

// The first bytes of a file, uncompressed for gzip. Throws UserError if the file cannot be read.
std::vector<uint8_t> file_head(const std::string& path, std::size_t bytes);

}  // namespace tutti
