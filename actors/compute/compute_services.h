#pragma once

#include <optional>
#include <string>

#include "actors/compute/train_step.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"
#include "training/rank_services.h"
#include "training/state.h"

namespace tutti {

// The services of a rank in a run, by its Exchange with the other ranks, Sync and the memory meter.
class ComputeServices final : public RankServices {
 public:
  // All references must outlive this.
  ComputeServices(const State& state, Recorder& recorder) : state_(state), recorder_(recorder) {}

  // Before training, once the train step is set up. Until then the services serve a single rank.
  void begin(Context& context, TrainStep& train_step);

  int rank() const override { return context_ ? state_.topology.rank : 0; }
  int world() const override { return context_ ? state_.topology.world : 1; }
  bool shards() const override { return context_ && state_.topology.share.pieces > 1; }
  bool evaluates_together() const override;
  void sum_over_shards(const at::Tensor& values) override;
  void sum_over_ranks(const at::Tensor& values) override;
  void hold_model(bool works, int64_t forwards) override;
  void free_model() override;
  void end_forwards() override;
  void visit_parameters(std::size_t parameters, bool works, const Visit& visit) override;
  std::optional<std::string> attempt(const Work& work) override;
  void still_at_work() override;

 private:
  void record(TraceKind kind);

  const State& state_;
  Recorder& recorder_;
  Context* context_ = nullptr;
  TrainStep* train_step_ = nullptr;
};

}  // namespace tutti
