#include "algorithms/augmentation/cutmix.h"

#include <ATen/ops/index_select.h>

#include <cmath>

#include "algorithms/augmentation/fit.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "training/state.h"

namespace tutti {
namespace {

// Python's int() of a product.
int64_t part_of(int64_t size, double part) { return static_cast<int64_t>(static_cast<double>(size) * part); }

// The area left outside of the box, as a part of the image.
double draw_lambda(const at::Tensor& images, const CutMixOptions& how, Draws& draws) {
  if (!how.length) return how.alpha > 0.0 ? draws.beta(how.alpha, how.alpha) : 0.0;
  const int64_t height = images.size(-2), width = images.size(-1);
  return static_cast<double>(part_of(height, *how.length) * part_of(width, *how.length)) /
         static_cast<double>(height * width);
}

Box draw_bbox(const at::Tensor& images, const CutMixOptions& how, Draws& draws) {
  const double cut = std::sqrt(1.0 - draw_lambda(images, how, draws));
  return draw_box(images, part_of(images.size(-2), cut), part_of(images.size(-1), cut), how.uniform_sampling,
                  draws);
}

double adjusted_lambda(const at::Tensor& images, const Box& bbox) {
  return 1.0 - static_cast<double>(bbox.area()) / static_cast<double>(images.size(-2) * images.size(-1));
}

// The boxes of images[indices] are copied from where they are to where they belong.
at::Tensor cut_and_mixed(const at::Tensor& images, const Box& bbox, const at::Tensor& indices) {
  at::Tensor mixed = images.clone(), boxes = bbox.of(mixed);
  at::index_select_out(boxes, bbox.of(images), 0, indices);
  return mixed;
}

bool is_mask(const at::Tensor& target, const at::Tensor& images) {
  return target.dim() > 2 && target.sizes().slice(target.dim() - 2) == images.sizes().slice(images.dim() - 2);
}

}  // namespace

bool CutMix::try_on(const State& state, Batch& sample) const {
  const at::Tensor& input = options().input_key.get(sample);
  require_images(input);
  if (options().interpolate_loss && is_mask(options().target_key.get(sample), input))
    throw UserError("targets as large as the images get their boxes; interpolate_loss is for others");
  return SampleMixing::try_on(state, sample);
}

CutMixed cutmix_batch(const at::Tensor& input, const at::Tensor& target, const Box& bbox,
                      const at::Tensor& indices) {
  return {cut_and_mixed(input, bbox, indices), target.index_select(0, indices), adjusted_lambda(input, bbox),
          bbox};
}

CutMixed cutmix_batch(const at::Tensor& input, const at::Tensor& target, Draws& draws,
                      const CutMixOptions& options) {
  const at::Tensor indices = copy_to_device(draws.permutation(input.size(0)), input.device());
  return cutmix_batch(input, target, draw_bbox(input, options, draws), indices);
}

SampleMixing::Mixed CutMix::mix(const State& state, const at::Tensor& input, const at::Tensor& partners) {
  bbox_ = draw_bbox(input, how_, *state.draws("CutMix"));
  if (bbox_.area() == 0) TUTTI_PROBE("cutmix: the box is empty");
  return {cut_and_mixed(input, bbox_, partners), 1.0 - adjusted_lambda(input, bbox_)};
}

at::Tensor CutMix::mix_targets(const State& state, const at::Tensor& target,
                               const at::Tensor& partner_target) const {
  if (is_mask(target, options().input_key.get(state.batch))) {
    at::Tensor mixed = target.clone();
    bbox_.of(mixed).copy_(bbox_.of(partner_target));
    return mixed;
  }
  return SampleMixing::mix_targets(state, target, partner_target);
}

AlgorithmPtr CutMixAlgorithm::make(const Setting&) const { return std::make_shared<CutMix>(*this, *this); }

}  // namespace tutti
