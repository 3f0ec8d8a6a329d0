#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"
#include "training/state.h"

namespace tutti {

// How the outcome of a rank's pass becomes that of all ranks: through Sync, or, on a rank alone, at once. A
// pass is forward, backward and the verdict on them.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // The collectives of the passes from here on; `statistics`: float32 numbers that a rank gathers.
  virtual void plan(Context& context, int64_t statistics) = 0;

  // Around the microbatches of a pass. An abandoned pass, thrown out of backward, takes part in its
  // collectives all the same, with zeros.
  virtual void begin_pass() {}
  virtual void begin_last_microbatch() {}
  virtual void end_pass() {}
  virtual void abandon_pass() {}

  // The verdict of all ranks and their statistics, [world, statistics].
  virtual StepFinished agree(Context& context, Verdict mine, const at::Tensor& statistics) = 0;
  // After the verdict: gives every view its gradient, the sum over ranks; undefined where no rank has one.
  virtual void take_gradients(Context& context, const Verdict& all) = 0;
  // True if gradients have memory of their own, which is dropped when the step is over.
  virtual bool owns_gradients() const = 0;

  // The sum over ranks of float64 `values`, outside of a pass.
  virtual at::Tensor sum(Context& context, const at::Tensor& values) = 0;

  virtual double bucket_bytes() const { return 0; }
};

// For a rank alone: gradients are autograd's own. `scaled`: losses are, so every gradient is looked at.
std::unique_ptr<Exchange> make_lone_exchange(State& state, bool scaled);

// For several ranks: gradients travel in buckets of `bucket_bytes`. Collective: all ranks make theirs at
// once.
std::unique_ptr<Exchange> make_exchange(Context& context, State& state, int64_t bucket_bytes,
                                        const RankActors& actors, Recorder& recorder);

}  // namespace tutti
