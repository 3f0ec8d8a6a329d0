#include "algorithms/loop/selective_backprop.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_linear1d.h>
#include <ATen/ops/upsample_trilinear3d.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "runtime/text.h"
#include "training/state.h"

namespace tutti {

namespace {

// At least one, of a short last batch too: a mean over nothing is no loss.
int64_t kept_of(int64_t samples, double keep) {
  return std::min(samples, std::max<int64_t>(static_cast<int64_t>(keep * static_cast<double>(samples)), 1));
}

int64_t ceil_of_quotient(int64_t number, int64_t divisor) { return (number + divisor - 1) / divisor; }

}  // namespace

bool should_selective_backprop(double current_duration, int64_t batch_idx, double start, double end,
                               int64_t interrupt) {
  const bool is_interval = current_duration >= start && current_duration < end;
  return is_interval && (interrupt == 0 || (batch_idx + 1) % interrupt != 0);
}

at::Tensor scaled_input(const at::Tensor& input, double scale_factor) {
  if (scale_factor >= 1.0) return input;
  const std::vector<double> factors(static_cast<std::size_t>(input.dim() - 2), scale_factor);
  switch (input.dim()) {
    case 3:
      return at::upsample_linear1d(input, std::nullopt, /*align_corners=*/false, factors);
    case 4:
      return at::upsample_bilinear2d(input, std::nullopt, /*align_corners=*/false, factors);
    case 5:
      return at::upsample_trilinear3d(input, std::nullopt, /*align_corners=*/false, factors);
    default:
      throw UserError(
          "selective backprop: scale_factor needs an input [N, C, ...] of 3 to 5 dimensions, not " +
          shape_text(input.sizes()));
  }
}

std::vector<double> selection_probabilities(int64_t samples, double keep) {
  std::vector<double> probabilities(static_cast<std::size_t>(samples));
  for (std::size_t rank = 0; rank < probabilities.size(); ++rank)
    probabilities[rank] =
        std::pow((static_cast<double>(rank) + 0.5) / static_cast<double>(samples), 1.0 / keep - 1.0);
  const double sum = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

at::Tensor choose_by_loss(const at::Tensor& losses, double keep, Draws& draws) {
  const int64_t samples = losses.size(0);
  const int64_t count = kept_of(samples, keep);
  std::vector<int64_t> ranks;
  if (count > 0) ranks = draws.choose(count, selection_probabilities(samples, keep));
  return losses.argsort().index_select(0, copy_to_device(at::tensor(ranks, at::kLong), losses.device()));
}

std::pair<at::Tensor, at::Tensor> select_using_loss(
    const at::Tensor& input, const at::Tensor& target,
    const std::function<at::Tensor(const at::Tensor& input)>& model,
    const std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& target)>& loss_fun,
    Draws& draws, double keep, double scale_factor) {
  const at::NoGradGuard no_grad;
  const at::Tensor losses = loss_fun(model(scaled_input(input, scale_factor)), target);
  const at::Tensor chosen = choose_by_loss(losses, keep, draws);
  return {input.index_select(0, chosen), target.index_select(0, chosen)};
}

namespace {

// True if a step begins from `start` up to `end` of the training; in epochs the time stands still within one.
bool is_in_training(const Time& whole, double start, double end) {
  const bool is_counted = whole.unit() == TimeUnit::kEpoch || whole.unit() == TimeUnit::kBatch;
  if (!is_counted) return start < std::min(end, 1.0);
  double first = std::max(std::floor(start * whole.value()) - 1.0, 0.0);
  while (first / whole.value() < start) ++first;
  return first < whole.value() && first / whole.value() < end;
}

}  // namespace

void SelectiveBackprop::require(const State& state) const {
  const std::string no_effect = name() + " has no effect: ";
  if (options_.keep >= 1.0) return state.warn_on_rank_zero(no_effect + "keep is 1");
  if (options_.interrupt == 1)
    return state.warn_on_rank_zero(no_effect + "interrupt = 1 leaves out every batch");
  if (!is_in_training(state.max_duration, options_.start, options_.end))
    state.warn_on_rank_zero(no_effect + "no step of a training of " + state.max_duration.text() +
                            formatted(" is from start = %g to end = %g of it", options_.start, options_.end));
}

// The model sees smaller images for the choice alone.
bool SelectiveBackprop::try_on(const State& state, Batch& sample) const {
  options_.target_key.get(sample);
  Batch smaller = sample;
  options_.input_key.set(smaller, scaled_input(options_.input_key.get(sample), options_.scale_factor));
  if (!state.losses_of(state.try_forward(smaller), smaller).defined())
    throw UserError(std::string(state.model->kind()) + " does not give the loss of each sample");
  return false;
}

bool SelectiveBackprop::match(Event event, const State& state) const {
  return event == Event::kAfterDataloader && options_.keep < 1.0 &&
         should_selective_backprop(state.elapsed_duration().value(), state.timestamp.batch_in_epoch,
                                   options_.start, options_.end, options_.interrupt);
}

int64_t SelectiveBackprop::forwards(const State& state) const {
  return match(Event::kAfterDataloader, state) ? state.grad_accum : 0;
}

void SelectiveBackprop::apply(Event, State& state, Logger&) {
  if (state.batch.samples() == 0) {
    TUTTI_PROBE("selective backprop: a rank without samples");
    return;
  }
  const at::Tensor losses = losses_of(state, state.batch);
  const auto draws = state.draws("SelectiveBackprop", state.first_sample);
  const at::Tensor chosen = choose_by_loss(losses, options_.keep, *draws);
  if (chosen.size(0) == 1) TUTTI_PROBE("selective backprop: a single sample is kept");
  if (chosen.size(0) < state.grad_accum) TUTTI_PROBE("selective backprop: fewer samples than microbatches");
  state.kept_samples = static_cast<double>(chosen.size(0)) / static_cast<double>(state.batch.samples());
  state.batch = state.batch.map([&](const at::Tensor& array) { return array.index_select(0, chosen); });
}

namespace {

// Layers draw for a part of the batch by its place in the global batch.
class PartOfBatch {
 public:
  explicit PartOfBatch(Model& model) : model_(model), whole_(&model.context()), part_(*whole_) {
    set_context(model_, &part_);
  }
  ~PartOfBatch() { set_context(model_, whole_); }
  PartOfBatch(const PartOfBatch&) = delete;
  PartOfBatch& operator=(const PartOfBatch&) = delete;

  void begins_at(int64_t sample) { part_.begin_pass(whole_->first_sample + sample); }

 private:
  Model& model_;
  const ForwardContext* whole_;
  ForwardContext part_;
};

}  // namespace

// In as many parts as there are microbatches with samples: what is kept may be too little for grad_accum.
at::Tensor SelectiveBackprop::losses_of(const State& state, const Batch& batch) const {
  const at::NoGradGuard no_grad;
  const int64_t samples = batch.samples(), kept = kept_of(samples, options_.keep);
  const int64_t microbatches = ceil_of_quotient(kept, ceil_of_quotient(kept, state.grad_accum));
  const int64_t size = ceil_of_quotient(samples, microbatches);
  std::vector<at::Tensor> losses;
  PartOfBatch place(*state.model);
  for (int64_t first = 0; first < samples; first += size) {
    place.begins_at(first);
    Batch part = batch.narrow(first, std::min(size, samples - first));
    options_.input_key.set(part, scaled_input(options_.input_key.get(part), options_.scale_factor));
    losses.push_back(state.losses_of(state.forward(part), part));
  }
  return at::cat(losses);
}

AlgorithmPtr SelectiveBackpropOptions::make(const Setting&) const {
  return std::make_shared<SelectiveBackprop>(*this);
}

}  // namespace tutti
