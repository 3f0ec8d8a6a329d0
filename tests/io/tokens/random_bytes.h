#pragma once

#include <cstdint>
#include <string>

namespace tutti {

// Evenly spread, as those of compressed files; the same each time.
inline std::string random_bytes(int count) {
  std::string bytes;
  uint32_t state = 1;
  for (int i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    bytes += static_cast<char>(state >> 24);
  }
  return bytes;
}

}  // namespace tutti
