#include "algorithms/augmentation/progressive_resizing.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/upsample_nearest2d.h>

#include <algorithm>
#include <cmath>

#include "algorithms/augmentation/fit.h"
#include "data/transforms/picked_pixels.h"
#include "data/transforms/transform.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "training/state.h"

namespace tutti {
namespace {

using Images = std::pair<at::Tensor, at::Tensor>;

int64_t scaled(int64_t size, double scale) { return static_cast<int64_t>(static_cast<double>(size) * scale); }

// Torch's nearest source indices: float32 arithmetic, with the inverse of the scale as given.
at::Tensor nearest(int64_t size, double scale, const at::Tensor& images) {
  const at::Tensor places =
      at::arange(scaled(size, scale), at::TensorOptions(images.device()).dtype(at::kFloat));
  return places.mul(1.0 / scale).floor_().clamp_max_(size - 1).to(at::kLong);
}

// Torch's kernel has a fixed cost per row: about that of picking this many pixels.
constexpr int64_t kWideRow = 64;

at::Tensor resized(const at::Tensor& images, double scale) {
  if (images.dim() == 4 && images.is_floating_point() && scaled(images.size(-1), scale) > kWideRow)
    return at::upsample_nearest2d(images, at::OptionalIntArrayRef(), std::vector<double>{scale, scale});
  return pixels_at(images, nearest(images.size(-2), scale, images), nearest(images.size(-1), scale, images));
}

at::Tensor cropped(const at::Tensor& images, double scale, int64_t top, int64_t left) {
  return images.narrow(-2, top, scaled(images.size(-2), scale))
      .narrow(-1, left, scaled(images.size(-1), scale));
}

// The place in a target for a place in the image, in Composer's float32.
int64_t place_in(int64_t target_size, int64_t size, int64_t place) {
  const auto ratio = static_cast<float>(static_cast<double>(target_size) / static_cast<double>(size));
  return static_cast<int64_t>(ratio * static_cast<float>(place));
}

Images cropped_alike(const at::Tensor& input, const at::Tensor& target, double scale, bool crop_targets,
                     Draws& draws) {
  const int64_t height = input.size(-2), width = input.size(-1);
  const int64_t top = draws.integer(0, height - scaled(height, scale));
  const int64_t left = draws.integer(0, width - scaled(width, scale));
  const at::Tensor images = cropped(input, scale, top, left);
  if (!crop_targets) return {images, target};
  return {images, cropped(target, scale, place_in(target.size(-2), height, top),
                          place_in(target.size(-1), width, left))};
}

}  // namespace

Images resize_batch(const at::Tensor& input, const at::Tensor& target, double scale_factor, ResizeMode mode,
                    bool resize_targets, Draws& draws) {
  TUTTI_ASSERT(input.dim() > 2, "images to resize need a height and a width");
  TUTTI_ASSERT(!resize_targets || target.dim() > 2, "targets to resize need a height and a width");
  if (scale_factor >= 1.0) return {input, target};
  if (mode == ResizeMode::kCrop) return cropped_alike(input, target, scale_factor, resize_targets, draws);
  return {resized(input, scale_factor), resize_targets ? resized(target, scale_factor) : target};
}

bool ProgressiveResizing::try_on(const State& state, Batch& sample) const {
  const at::Tensor &images = options_.input_key.get(sample), &target = options_.target_key.get(sample);
  require_images(images);
  if (options_.resize_targets && target.dim() < 3)
    throw UserError("targets without a height and a width cannot be resized");
  if (!options_.resize_targets && is_of_pixels(target.sizes().slice(1), {images.size(2), images.size(3)}))
    throw UserError("targets have a height and a width, as the images; expected resize_targets = true");
  resize(sample, options_.initial_scale, *make_draws(state.seed, {.name = "ProgressiveResizing"}));
  return true;
}

bool ProgressiveResizing::match(Event event, const State&) const { return event == Event::kAfterDataloader; }

void ProgressiveResizing::apply(Event, State& state, Logger& logger) {
  const double scale = scale_at(state.elapsed_duration().value());
  if (scale == 1.0) TUTTI_PROBE("resizing: images have their full size");
  resize(state.batch, scale, *state.draws("ProgressiveResizing"));
  const at::Tensor& images = options_.input_key.get(state.batch);
  logger.log_metrics({{"progressive_resizing/height", static_cast<double>(images.size(2))},
                      {"progressive_resizing/width", static_cast<double>(images.size(3))},
                      {"progressive_resizing/scale_factor", scale}});
}

double ProgressiveResizing::scale_at(double elapsed) const {
  const double full_from = 1.0 - options_.finetune_fraction;
  double grown = 0.0;
  if (elapsed >= full_from)
    grown = 1.0;
  else if (elapsed >= options_.delay_fraction)
    grown = (elapsed - options_.delay_fraction) / (full_from - options_.delay_fraction);
  return options_.initial_scale + (1.0 - options_.initial_scale) * grown;
}

// The width, rounded as Python does (half to even), decides about the height too.
void ProgressiveResizing::resize(Batch& batch, double scale, Draws& draws) const {
  const at::Tensor& input = options_.input_key.get(batch);
  const auto width = static_cast<double>(input.size(3)), step = static_cast<double>(options_.size_increment);
  const double pinned = std::nearbyint(width * scale / step) * step / width;
  auto [images, target] = resize_batch(input, options_.target_key.get(batch), pinned, options_.mode,
                                       options_.resize_targets, draws);
  options_.input_key.set(batch, std::move(images));
  options_.target_key.set(batch, std::move(target));
}

AlgorithmPtr ProgressiveResizingOptions::make(const Setting& section) const {
  if (delay_fraction + finetune_fraction > 1.0)
    section.at("delay_fraction").fail("together with finetune_fraction this is more than 1");
  return std::make_shared<ProgressiveResizing>(*this);
}

}  // namespace tutti
