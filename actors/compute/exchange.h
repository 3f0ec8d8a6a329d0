#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/messages/rank_actors.h"
#include "actors/messages/verdict.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"
#include "training/state.h"

namespace tutti {

struct PassResult {
  Verdict verdict;        // of all ranks
  at::Tensor statistics;  // [world, numbers]; undefined without statistics
};

// Combines a pass over ranks: through Sync, or at once on a single rank. A pass is forward, backward and the
// verdict on them.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Sets the collectives of later passes. `statistics`: float32 numbers of each rank, all-gathered. `sums`:
  // numbers of the verdict's sums.
  virtual void plan(Context& context, int64_t statistics, int64_t sums) = 0;

  // Called before each step: gradients of parameters that require none any more are not reduced.
  virtual void begin_step(Context&) {}

  // Called around the microbatches of a pass. A pass abandoned in the middle of backward still takes part in
  // its collectives, with zeros.
  virtual void begin_pass() {}
  virtual void begin_last_microbatch() {}
  virtual void end_pass() {}
  virtual void abandon_pass() {}

  // Returns the verdict and the statistics of all ranks.
  virtual PassResult agree(Context& context, Verdict mine, const at::Tensor& statistics) = 0;
  // After the verdict: sets the gradient of every view to the sum over ranks; undefined if no rank has one.
  virtual void take_gradients(Context& context, const Verdict& all) = 0;
  // True if gradients have memory of their own, freed at the end of the step.
  virtual bool owns_gradients() const = 0;

  // The sum over ranks of float64 `values`, outside of a pass.
  virtual at::Tensor sum(Context& context, const at::Tensor& values) = 0;

  virtual double bucket_bytes() const { return 0; }
};

// For one rank: gradients are autograd's own. `scaled`: losses are scaled, so all of every gradient is
// checked.
std::unique_ptr<Exchange> make_single_exchange(State& state, bool scaled);

// For several ranks: gradients are reduced in buckets of `bucket_bytes`. Collective.
std::unique_ptr<Exchange> make_exchange(Context& context, State& state, int64_t bucket_bytes,
                                        const RankActors& actors, Recorder& recorder);

}  // namespace tutti
