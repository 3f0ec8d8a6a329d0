#include "tests/data/transforms/test_images.h"

#include <ATen/ATen.h>

#include "tensors/draws.h"

namespace tutti {

std::vector<at::Tensor> test_images() {
  const auto draws = make_draws(7, {.name = "test images"});
  std::vector<at::Tensor> images;
  for (const auto& [height, width] :
       {std::pair{1, 1}, {1, 9}, {7, 1}, {2, 3}, {3, 3}, {16, 16}, {21, 34}, {40, 67}})
    for (const int64_t channels : {1, 3})
      images.push_back(draws->uniforms({height, width, channels}).mul(256).to(at::kByte));
  images.push_back(draws->uniforms({3, 12, 10}).mul(256).to(at::kByte).permute({2, 1, 0}));
  return images;
}

}  // namespace tutti
