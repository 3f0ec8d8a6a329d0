#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/messages/rank_actors.h"
#include "actors/messages/verdict.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"
#include "sharding/catalog.h"
#include "training/state.h"

namespace tutti {

struct PassResult {
  Verdict verdict;        // of all ranks
  at::Tensor statistics;  // [world, numbers]; undefined without statistics
};

// Facts that fix the collectives of a pass; the same on all ranks.
struct PassShape {
  int64_t forwards = 0;  // of the model before the microbatches, without gradients
  int64_t microbatches = 1;
  int64_t statistics = 0;  // float32 numbers of each rank, all-gathered
  int64_t sums = 0;        // numbers of the verdict's sums
  friend bool operator==(const PassShape&, const PassShape&) = default;
};

// Combines a pass over ranks: through Sync, or at once on a single rank. A pass is forward, backward and the
// verdict on them. Called in this order: begin_pass, gather, for each microbatch begin_microbatch and
// end_microbatch, end_pass, agree; after an exception abandon_pass, then agree.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Called before each step. Sets the collectives of later passes, if they change: gradients of newly frozen
  // parameters are not reduced.
  virtual void plan(Context& context, const PassShape& shape) = 0;

  virtual void begin_pass() {}
  // Call when this rank's share of the parameters has its values for the pass.
  virtual void gather() {}
  // `last`: of the pass.
  virtual void begin_microbatch(int64_t /*microbatch*/, bool /*last*/) {}
  virtual void end_microbatch() {}
  virtual void end_pass() {}
  virtual void abandon_pass() {}

  // Call once for each pass: `mine` and `statistics` of this rank.
  virtual PassResult agree(Context& context, Verdict mine, const at::Tensor& statistics) = 0;
  // After the verdict: sets the gradient of every view to the sum over ranks; undefined if no rank has one.
  virtual void take_gradients(Context& context, const Verdict& all) = 0;
  // True if gradients have memory of their own, freed at the end of the step.
  virtual bool owns_gradients() const = 0;

  // The sum over ranks of float64 `values`, outside of a pass.
  virtual at::Tensor sum(Context& context, const at::Tensor& values) = 0;

  // Between passes of training: allows running the model until `free_model`. Collective if parameters are
  // sharded; ranks with `wanted` false only serve. `forwards`: the most forward passes on a rank without
  // memory for the whole model.
  virtual void hold_model(Context&, bool /*wanted*/, int64_t /*forwards*/) {}
  virtual void free_model(Context&) {}
  // As State::visit_parameters; without `visit` this rank only serves.
  virtual void visit_parameters(Context&, const RankServices::Visit& /*visit*/) {}

  // True if no rank has memory for the whole model: ranks evaluate each batch together, with the same number
  // of forwards on all.
  virtual bool evaluates_together() const { return false; }

  virtual double bucket_bytes() const { return 0; }
};

// For one rank: gradients are autograd's own. `scaled`: losses are scaled, so every element of the gradients
// is checked.
std::unique_ptr<Exchange> make_single_exchange(State& state, bool scaled);

struct ExchangeOptions {
  int64_t bucket_bytes = 0;
  ShardingSettings sharding;
};

// For several ranks. Collective. All references must outlive the exchange.
std::unique_ptr<Exchange> make_exchange(Context& context, State& state, const ExchangeOptions& options,
                                        const RankActors& actors, Recorder& recorder);

}  // namespace tutti
