#include "actors/compute/compute_services.h"

#include "tensors/memory/memory_attempt.h"

namespace tutti {

void ComputeServices::begin(Context& context, TrainStep& train_step) {
  context_ = &context;
  train_step_ = &train_step;
}

bool ComputeServices::evaluates_together() const {
  return context_ && train_step_->exchange().evaluates_together();
}

void ComputeServices::sum_over_shards(const at::Tensor& values) {
  train_step_->exchange().sum(values, GroupRole::kReductions);
}

void ComputeServices::sum_over_ranks(const at::Tensor& values) {
  if (context_) train_step_->exchange().sum(values);
}

void ComputeServices::hold_model(bool works, int64_t forwards) {
  if (context_) train_step_->exchange().unshard_model(works, forwards);
}

void ComputeServices::free_model() {
  if (context_) train_step_->exchange().reshard_model();
}

void ComputeServices::end_forwards() {
  if (context_) train_step_->exchange().end_held_forwards();
}

void ComputeServices::visit_parameters(std::size_t parameters, bool works, const Visit& visit) {
  if (!shards()) return RankServices::visit_parameters(parameters, works, visit);
  train_step_->exchange().visit_parameters(works ? visit : Visit());
}

std::optional<std::string> ComputeServices::attempt(const Work& work) {
  auto failure = MemoryAttempt(recorder_, state_.device.memory_slot).run(work);
  if (failure) record(TraceKind::kOutOfMemory);
  return failure;
}

void ComputeServices::still_at_work() { record(TraceKind::kListenerAtWork); }

void ComputeServices::record(TraceKind kind) {
  if (context_) recorder_.record({context_->now(), kind, state_.timestamp.batch});
}

}  // namespace tutti
