#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tutti {

// The bytes of a PNG file (ISO/IEC 15948) with 8 bits a channel, not interlaced. `pixels` are [height, width,
// channels], of 1 channel (grey) or 3 (red, green, blue); none of the three may be 0. What is in it is not
// compressed (deflate's stored blocks), so that no library is needed: it is as large as the pixels.
std::string png(std::span<const uint8_t> pixels, int64_t height, int64_t width, int64_t channels);

}  // namespace tutti
