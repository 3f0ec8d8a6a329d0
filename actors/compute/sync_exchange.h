#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "actors/compute/exchange.h"
#include "actors/compute/gathers.h"
#include "actors/messages/plan_entry.h"

namespace tutti {

// The units of the state's model, in the order in which it calls them for a sample of the training data.
std::vector<Unit> units_of(const State& state, const ShardingSettings& settings);

// The common part of exchanges through Sync: gathers of sharded parameters, statistics, the verdict.
class SyncExchange : public Exchange {
 public:
  SyncExchange(Context& context, State& state, const RankActors& actors, Recorder& recorder);
  ~SyncExchange() override;

  void plan(Context& context, const PassShape& shape) override;
  void gather() override;
  void begin_microbatch(int64_t microbatch, bool last) override;
  void end_microbatch() override;
  void abandon_pass() override;
  PassResult agree(Context& context, Verdict mine, const at::Tensor& statistics) override;
  void take_gradients(Context& context, const Verdict& all) override;
  at::Tensor sum(Context& context, const at::Tensor& values) override;
  void hold_model(Context& context, bool wanted, int64_t forwards) override;
  void free_model(Context& context) override;
  void visit_parameters(Context& context, const RankServices::Visit& visit) override;
  bool evaluates_together() const override { return frees_; }

 protected:
  // Shards the parameters. Call in the constructor, before hooks on parameters.
  void shard(const std::vector<Unit>& units, Gathers::Options options);
  bool shards() const { return gathers_ != nullptr; }

  // For each parameter, true if it required a gradient at the last `plan`; the same on all ranks.
  const std::vector<bool>& trained() const { return trained_; }
  // Called when `trained`, and with it `reductions`, has changed.
  virtual void follow_frozen() = 0;
  // The entries that reduce gradients, behind `first` others in the plan.
  virtual std::vector<PlanEntry> reductions(int first, int64_t microbatches) = 0;
  // Waits until this rank's share of the gradients of a pass is reduced. True if it is finite.
  virtual bool finish_reductions() = 0;
  // The reduced gradient of each view; undefined without a place.
  virtual std::vector<at::Tensor> reduced() = 0;
  virtual int64_t unused() const = 0;
  virtual at::Tensor used() const = 0;

  void run(int entry);
  bool await(int entry);  // true if its result is finite
  // Memory of a group, charged to the meter.
  std::vector<at::Tensor> allocate(GroupRole group, std::vector<int64_t> bytes);

  Context& context_;
  State& state_;
  const RankActors& actors_;
  Recorder& recorder_;

 private:
  void set_training_plan();

  ActorId sync_;
  std::unique_ptr<Gathers> gathers_;
  bool frees_ = false;
  std::vector<bool> trained_;
  std::optional<PassShape> shape_;
  bool has_other_plan_ = false;  // Sync's plan is not that of training
  at::Tensor verdict_, statistics_, gathered_;
  int64_t charged_bytes_ = 0;  // to the meter, for memory outside of the meter's allocator
};

}  // namespace tutti
