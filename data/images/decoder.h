#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <span>

#include "data/images/image_size.h"

// Images in files, as by Pillow's Image.open(file).convert("RGB"): alpha is dropped, EXIF's orientation is
// ignored, 16 bits become 8, gray, palettes and CMYK become RGB.
namespace tutti {

// By default; Pillow warns of more.
inline constexpr int64_t kMostPixelsOfAnImage = 89'478'485;

// A part of an image, and the least size in pixels that is needed.
struct NeededPart {
  Region part;
  ImageSize least;
};
// Chooses the part, by the size of the whole image.
using ChoosePart = std::function<NeededPart(const ImageSize& whole)>;

struct Decoding {
  bool may_shrink = false;  // a JPEG's part to 1/2, 1/4 or 1/8 of its size
  int64_t most_pixels = kMostPixelsOfAnImage;
};

// True if the bytes begin as a readable image file, other than PPM, PGM and PBM, which begin as texts may.
bool begins_as_image(std::span<const std::byte> file);

// The size in the header. Throws UserError without the file's name: another format, a damaged header, too
// many pixels.
ImageSize encoded_size(std::span<const std::byte> file, int64_t most_pixels = kMostPixelsOfAnImage);

// The whole image: uint8 [height, width, 3]. Throws UserError, also for damaged and truncated files.
at::Tensor decode_image(std::span<const std::byte> file);

// The chosen part alone: uint8 [height, width, 3], equal to that part of decode_image. With may_shrink a
// JPEG's part is decoded at 1/2, 1/4 or 1/8 of its size if that is not below part.least. Damage outside of
// the part may go unseen.
at::Tensor decode_part(std::span<const std::byte> file, const ChoosePart& choose, const Decoding& decoding);

// The values of a mask, uint8 [height, width]: indexes of a PNG's palette, or gray as stored. Throws
// UserError for colors, and for JPEG and WebP, which change values.
at::Tensor decode_mask(std::span<const std::byte> file, int64_t most_pixels = kMostPixelsOfAnImage);

}  // namespace tutti
