#include "algorithms/augmentation/sample_mixing.h"

#include <ATen/ops/lerp.h>
#include <ATen/ops/tensor.h>

#include "algorithms/augmentation/fit.h"
#include "models/losses.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "training/state.h"

namespace tutti {

bool SampleMixing::try_on(const State& state, Batch& sample) const {
  const at::ScalarType dtype = options_.input_key.get(sample).scalar_type();
  if (at::isIntegralType(dtype, /*includeBool=*/true) && dtype != at::kByte)
    throw UserError("inputs that are " + std::string(at::toString(dtype)) + " cannot be mixed");
  options_.target_key.get(sample);
  if (!options_.interpolate_loss)
    require_dense_targets(state, "interpolate_loss = true mixes losses instead");
  return false;
}

bool SampleMixing::match(Event event, const State&) const {
  return event == Event::kBeforeForward ||
         event == (options_.interpolate_loss ? Event::kBeforeBackward : Event::kBeforeLoss);
}

void SampleMixing::apply(Event event, State& state, Logger&) {
  if (event == Event::kBeforeForward) {
    const at::Tensor& input = options_.input_key.get(state.batch);
    const at::Tensor partners =
        state.draws(name() + "/partners", state.first_sample)->permutation(input.size(0));
    if (partners.numel() == 1) TUTTI_PROBE("mixing: a microbatch of one sample has no partner");
    partners_.assign(partners.data_ptr<int64_t>(), partners.data_ptr<int64_t>() + partners.numel());
    Mixed mixed = mix(state, input, copy_to_device(partners, input.device()));
    share_ = mixed.share;
    options_.input_key.set(state.batch, std::move(mixed.input));
    if (state.composer) state.batch.set(kept_targets(), options_.target_key.get(state.batch));
  } else if (event == Event::kBeforeLoss) {
    const at::Tensor& target = options_.target_key.get(state.batch);
    options_.target_key.set(state.batch, mix_targets(state, target, partner_target(state)));
  } else {
    Batch partners = state.batch;
    options_.target_key.set(partners, partner_target(state));
    state.loss = at::lerp(state.loss, state.loss_of(state.outputs, partners), share_);
  }
}

at::Tensor SampleMixing::partner_target(const State& state) const {
  const TensorTree* kept = state.batch.find(kept_targets());
  const at::Tensor& target = kept ? kept->tensor() : options_.target_key.get(state.batch);
  return target.index_select(0, copy_to_device(at::tensor(partners_, at::kLong), target.device()));
}

at::Tensor SampleMixing::mix_targets(const State& state, const at::Tensor& target,
                                     const at::Tensor& partner_target) const {
  const at::Tensor& scores = state.outputs.tensor();
  return at::lerp(dense_target(scores, target), dense_target(scores, partner_target), share_);
}

}  // namespace tutti
