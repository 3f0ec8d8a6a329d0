#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>

#include "data/images/decoder.h"
#include "io/formats/mds_values.h"
#include "tensors/param_view.h"

namespace tutti {

// True for a value that is an image, so far as its form says; values of `bytes` are looked into.
bool is_image(const MdsEncoding& encoding, MdsBytes value);

// An image as RGB: uint8 [height, width, 3], of an image file, or of Pillow's pixels (modes 1, L,
// LA, RGB, RGBA, CMYK). `choose`: as of decode_part. Throw UserError without a file's name.
at::Tensor mds_image(const MdsEncoding& encoding, MdsBytes value, const ChoosePart& choose,
                     const Decoding& decoding);
at::Tensor mds_image(const MdsEncoding& encoding, MdsBytes value, int64_t most_pixels = kMostPixelsOfAnImage);
ImageSize mds_image_size(const MdsEncoding& encoding, MdsBytes value,
                         int64_t most_pixels = kMostPixelsOfAnImage);

// A column of numbers or images as an array of samples: uint8, int64 or float32, as of an HDF5 file.
class MdsArrayColumn {
 public:
  struct Use {
    MdsNumber bytes_are = MdsNumber::kInt64;     // of an encoding `bytes` that is no image
    bool is_target = false;                      // uint8 becomes int64
    int64_t most_pixels = kMostPixelsOfAnImage;  // of an image
  };

  // Shape and dtype are those of `first`. Throws UserError if its values are no numbers.
  MdsArrayColumn(const MdsEncoding& encoding, MdsBytes first, const Use& use);

  const Shape& shape() const { return shape_; }
  at::ScalarType dtype() const { return dtype_; }
  std::size_t row_bytes() const;

  // Writes a sample's row_bytes(). Throws UserError, without a file's name, for damaged values and values of
  // another shape.
  void write(MdsBytes value, std::byte* row) const;

 private:
  struct Numbers;
  Numbers numbers(MdsBytes value) const;
  Numbers images(MdsBytes value) const;

  MdsEncoding encoding_;
  Use use_;
  bool is_image_;
  Shape shape_;
  at::ScalarType dtype_;
};

}  // namespace tutti
