#pragma once

#include <cstdint>

namespace tutti {

// Height and width of an image, in pixels. kUnknownSize: images of differing sizes.
struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

// An edge of images that has not the same size in all samples.
inline constexpr int64_t kUnknownSize = -1;
inline constexpr ImageSize kUnknownImageSize{kUnknownSize, kUnknownSize};

// A rectangle of an image's pixels.
struct Region {
  int64_t top = 0;
  int64_t left = 0;
  ImageSize size = {};
  friend bool operator==(const Region&, const Region&) = default;
};

}  // namespace tutti
