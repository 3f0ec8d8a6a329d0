#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tutti {

// The bytes of a PNG file (ISO/IEC 15948), 8 bits a channel, not interlaced. `pixels`: [height, width,
// channels], no size 0; 1 channel (grey) or 3 (red, green, blue). Not compressed (stored blocks of deflate),
// so that no library is needed.
std::string png(std::span<const uint8_t> pixels, int64_t height, int64_t width, int64_t channels);

}  // namespace tutti
