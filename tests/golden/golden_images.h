#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "data/transforms/augmentations/image_operations.h"
#include "tests/golden/golden_file.h"

namespace tutti {

// The numbers of a tensor in order, without NaNs ("not drawn").
std::deque<double> drawn_numbers(const at::Tensor& draws);
std::deque<int64_t> whole_numbers(const at::Tensor& integers);

// The pixels of each image of an input: uint8 [H, W, C], or float [C, H, W] or [N, C, H, W].
std::vector<at::Tensor> pixels_of_each(const at::Tensor& images);

// Expects (gtest) uint8 images equal to the byte.
void expect_same_image(const at::Tensor& got, const at::Tensor& want, const std::string& what);

// Expects (gtest) that the operation draws `effective` from the numbers of `drawn` ("in" of the case), all of
// them, and makes of the image the wanted one.
void expect_operation(const ImageOperation& operation, double level, const at::Tensor& drawn,
                      double effective, const at::Tensor& image, const at::Tensor& want,
                      const std::string& what);

// The operations that a case of randaugment.h5 or augmix.h5 applied, in order over all images and chains.
class GoldenOperations {
 public:
  // Expects (gtest) the case's set of operations to be ours.
  explicit GoldenOperations(const GoldenCase& golden);

  // Expects (gtest) each of the next `count` operations, the first of them on `image`, to give its step.
  void expect_next(at::Tensor image, int64_t count);

  void expect_all_seen() const;

 private:
  std::string title_;
  double severity_;
  std::vector<ImageOperation> set_;
  at::Tensor index_, draws_, effective_, steps_;
  int64_t next_ = 0;
};

}  // namespace tutti
