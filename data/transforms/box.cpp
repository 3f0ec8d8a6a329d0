#include "data/transforms/box.h"

#include <algorithm>
#include <cmath>
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

std::optional<Region> draw_rectangle(const ImageSize& image, const ImageSize& most,
                                     const std::vector<double>& scale, const std::vector<double>& ratio,
                                     Draws& draws) {
  const auto area = static_cast<double>(image.height * image.width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double part = area * draws.uniform(scale[0], scale[1]);
    const double shape = std::exp(draws.uniform(std::log(ratio[0]), std::log(ratio[1])));
    const ImageSize size{static_cast<int64_t>(std::nearbyint(std::sqrt(part / shape))),
                         static_cast<int64_t>(std::nearbyint(std::sqrt(part * shape)))};
    if (size.height < 1 || size.width < 1 || size.height > most.height || size.width > most.width) continue;
    const int64_t top = draws.integer(0, image.height - size.height + 1);
    return Region{top, draws.integer(0, image.width - size.width + 1), size};
  }
  return std::nullopt;
}

}  // namespace tutti
