#include "data/transforms/cutout.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "data/transforms/picked_pixels.h"

namespace tutti {
namespace {

class CutOutTransform final : public ImageTransform {
 public:
  explicit CutOutTransform(const CutOutOptions& options) : options_(options) {}

 protected:
  at::Tensor image(const at::Tensor& image, Draws& draws) const override {
    return on_planes(image, [&](const at::Tensor& planes) { return cutout_batch(planes, draws, options_); });
  }
  bool moves_pixels() const override { return false; }

 private:
  CutOutOptions options_;
};

}  // namespace

at::Tensor cutout_batch(const at::Tensor& input, std::span<const Box> holes) {
  at::Tensor output = input.clone();
  for (const Box& hole : holes) hole.of(output).zero_();
  return output;
}

at::Tensor cutout_batch(const at::Tensor& input, Draws& draws, const CutOutOptions& options) {
  const auto shorter = static_cast<double>(std::min(input.size(-2), input.size(-1)));
  const auto side = static_cast<int64_t>(shorter * options.length);
  std::vector<Box> holes(static_cast<std::size_t>(options.num_holes));
  for (Box& hole : holes) hole = draw_box(input, side, side, options.uniform_sampling, draws);
  return cutout_batch(input, holes);
}

TransformPtr cutout_transform(const CutOutOptions& options) {
  return std::make_shared<CutOutTransform>(options);
}

TransformPtr CutOutOptions::make(const Setting&, const SampleSpec&) const { return cutout_transform(*this); }

}  // namespace tutti
