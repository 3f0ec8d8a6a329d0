#include "actors/compute/portion_runner.h"

#include <ATen/ops/full_like.h>

#include <cmath>

namespace tutti {

void PortionRunner::run(const Portion& portion, Pass& pass) {
  State& state = with_.state;
  const double weight = forward();
  if (weight == 0) return;
  begin_backward(portion, pass);
  with_.engine.run_event(Event::kBeforeBackward);
  note_loss(portion, weight, pass);
  if (!with_.engine.listens()) state.outputs = {};  // no listener uses them any more
  const at::Tensor root = wide(state.loss);
  root.backward(at::full_like(root, backward_factor(state, weight, pass)));
  with_.engine.run_event(Event::kAfterBackward);
}

// Returns the weight of the loss; 0: nothing counts, and the loss, a mean over nothing, is not a number.
double PortionRunner::forward() {
  auto& [state, engine, mark, metrics, host, sweep, context, statistics] = with_;
  double& weight = state.loss_weight;
  weight = loss_weight();
  if (weight == 0) return 0;
  const Batch given = metrics.any() ? state.batch : Batch();
  engine.run_event(Event::kBeforeForward);
  state.outputs = state.forward(state.batch);
  engine.run_event(Event::kAfterForward);
  if (metrics.any()) metrics.update(state, given, state.outputs);
  engine.run_event(Event::kBeforeLoss);
  if (engine.listens()) weight = loss_weight();  // algorithms may have changed targets
  if (weight == 0) return 0;
  state.loss = state.loss_of(state.outputs, state.batch);
  engine.run_event(Event::kAfterLoss);  // may change the loss and its weight
  return weight;
}

void PortionRunner::begin_backward(const Portion& portion, Pass& pass) {
  pass.in_backward = true;
  with_.mark(TraceKind::kBackward, portion.index);
  MemoryScope::pass_place();
}

// Listeners may have changed the loss. The device looks at its float32 value.
void PortionRunner::note_loss(const Portion& portion, double weight, Pass& pass) {
  const at::Tensor& loss = with_.state.loss;
  const bool checked_there = with_.state.device.runs_ahead();
  Verdict& mine = pass.verdict;
  mine.loss_weight += weight;
  Pass::Grain* const grain =
      pass.grains.empty() ? nullptr : &pass.grains.at(static_cast<std::size_t>(portion.index));
  if (grain) grain->loss_weight = weight;
  pass.numbers.add(loss, [&mine, grain, weight, checked_there](std::span<const double> value) {
    const bool finite = checked_there ? std::isfinite(static_cast<float>(value[0])) : std::isfinite(value[0]);
    if (!finite) mine.non_finite = 1;
    mine.loss_sum += value[0] * weight;
    if (grain) grain->loss_sum = value[0] * weight;
  });
  if (checked_there) pass.losses.push_back(loss.detach().to(at::kFloat, false, /*copy=*/true));
}

double PortionRunner::loss_weight() const {
  const State& state = with_.state;
  return loss_weight_of(state.device.is_cpu() ? state.batch : with_.host.of(state.batch));
}

double PortionRunner::loss_weight_of(const Batch& on_host) const {
  const double weight = with_.state.model->loss_weight(on_host);
  return with_.state.composer && weight > 0 ? static_cast<double>(on_host.samples()) : weight;
}

double backward_factor(const State& state, double weight, const Pass& pass) {
  return pass.step_weight.value_or(weight) * state.loss_scale;
}

at::Tensor wide(const at::Tensor& loss) {
  return at::isReducedFloatingType(loss.scalar_type()) ? loss.to(at::kFloat) : loss;
}

}  // namespace tutti
