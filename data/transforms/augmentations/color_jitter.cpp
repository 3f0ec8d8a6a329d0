#include "data/transforms/augmentations/color_jitter.h"

#include <algorithm>
#include <array>

#include "data/transforms/augmentations/color_operations.h"
#include "data/transforms/pixels.h"

namespace tutti {
namespace {

struct Step {
  const char* key;
  std::vector<double> ColorJitterOptions::*range;
  double center, lowest, highest;
  at::Tensor (*change)(const at::Tensor& image, double factor);
};

constexpr double kHighestFactor = 1e6;
constexpr std::array<Step, 4> kSteps = {
    {{"brightness", &ColorJitterOptions::brightness, 1, 0, kHighestFactor, enhance_brightness},
     {"contrast", &ColorJitterOptions::contrast, 1, 0, kHighestFactor, enhance_contrast},
     {"saturation", &ColorJitterOptions::saturation, 1, 0, kHighestFactor, enhance_color},
     {"hue", &ColorJitterOptions::hue, 0, -0.5, 0.5, adjust_hue}}};

// One number x is the range from center - x, or from the lowest value if that is higher, to center + x.
std::vector<double> range_of(const Setting& section, const Step& step, const std::vector<double>& given) {
  if (given.empty()) return {};
  const Setting& key = section.at(step.key);
  if (given.size() == 1 && given[0] < 0) key.fail("expected 0 or more, or [lowest, highest]");
  const std::vector<double> range =
      given.size() == 1 ? std::vector{std::max(step.lowest, step.center - given[0]), step.center + given[0]}
                        : given;
  if (range.size() != 2 || range[0] > range[1] || range[0] < step.lowest || range[1] > step.highest)
    key.fail("expected a number, or [lowest, highest]");
  return range;
}

}  // namespace

at::Tensor color_jitter(const at::Tensor& pixels, const ColorJitterOptions& ranges, Draws& draws) {
  const at::Tensor order = draws.permutation(std::ssize(kSteps));
  std::array<double, kSteps.size()> factors{};
  for (std::size_t i = 0; i < kSteps.size(); ++i)
    if (const std::vector<double>& range = ranges.*kSteps[i].range; !range.empty())
      factors[i] = draws.uniform(range[0], range[1]);
  at::Tensor changed = pixels;
  for (int64_t i = 0; i < std::ssize(kSteps); ++i) {
    const auto next = static_cast<std::size_t>(order[i].item<int64_t>());
    if (!(ranges.*kSteps[next].range).empty()) changed = kSteps[next].change(changed, factors[next]);
  }
  return changed;
}

TransformPtr color_jitter_transform(const ColorJitterOptions& ranges) {
  return pixel_transform(
      [ranges](const at::Tensor& pixels, Draws& draws) { return color_jitter(pixels, ranges, draws); },
      /*moves_pixels=*/false);
}

TransformPtr ColorJitterOptions::make(const Setting& section, const SampleSpec&) const {
  ColorJitterOptions ranges;
  for (const Step& step : kSteps) ranges.*step.range = range_of(section, step, this->*step.range);
  return color_jitter_transform(ranges);
}

}  // namespace tutti
