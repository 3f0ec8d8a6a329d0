#include "data/transforms/box.h"

#include <algorithm>
#include <utility>

namespace tutti {
namespace {

// The limits of an edge of the box: [low, high) of 0 to size - 1.
std::pair<int64_t, int64_t> draw_edge(int64_t size, int64_t cut, bool uniform_sampling, Draws& draws) {
  const int64_t half = cut / 2;
  const int64_t beyond = uniform_sampling ? cut - half : 0;  // Python's -(-cut // 2)
  const int64_t centre = draws.integer(-beyond, uniform_sampling ? size + half : size);
  return {std::clamp<int64_t>(centre - half, 0, size), std::clamp<int64_t>(centre + half, 0, size)};
}

}  // namespace

at::Tensor Box::of(const at::Tensor& images) const {
  return images.narrow(-2, top, bottom - top).narrow(-1, left, right - left);
}

Box draw_box(const at::Tensor& images, int64_t height, int64_t width, bool uniform_sampling, Draws& draws) {
  const auto [top, bottom] = draw_edge(images.size(-2), height, uniform_sampling, draws);
  const auto [left, right] = draw_edge(images.size(-1), width, uniform_sampling, draws);
  return {top, left, bottom, right};
}

}  // namespace tutti
