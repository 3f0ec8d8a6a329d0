#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "models/all_ranks.h"
#include "runtime/log.h"

namespace tutti {

// The services of a run for a rank's algorithms, callbacks and evaluations. This base serves a single rank
// with all parameters, for a loop of your own; in a run, ComputeServices implements the services.
//
// Where not said otherwise, all ranks call alike: the ranks that share parameters wait for each other.
class RankServices : public AllRanks {
 public:
  using Work = std::function<void()>;
  using Visit = std::function<void(std::size_t parameter)>;

  // True if the parameters are sharded: sums over shards and gathers take all ranks.
  virtual bool shards() const { return false; }
  // Sums float64 numbers, flat, over the ranks that share the parameters, in place. AllRanks has the sum over
  // all ranks, which models get in a pass of training (Model::ranks).
  virtual void sum_over_shards(const at::Tensor&) {}

  // True if ranks evaluate every batch together, around at most so many forwards on each.
  virtual bool evaluates_together() const { return false; }
  // Between the two the model may be run, `forwards` times at most, by the ranks for which `works`; 0: by
  // every rank, any number of times. Sharded parameters are gathered.
  virtual void hold_model(bool /*works*/, int64_t /*forwards*/) {}
  virtual void free_model() {}
  // Between the two, before ranks wait for each other: this rank runs the model no more, and serves the
  // forwards of other ranks. Parameters held for all forwards stay.
  virtual void end_forwards() {}
  // Holds the model while `work` runs, on the ranks for which `works`.
  void with_model(bool works, const Work& work, int64_t forwards);

  // Calls `visit` for every parameter, then whole, in an order of its own, on ranks for which `works`.
  virtual void visit_parameters(std::size_t parameters, bool works, const Visit& visit);

  // Runs work that may run out of memory, within the memory budget. Returns the error then, which a replay
  // repeats. May be called by one rank alone.
  virtual std::optional<std::string> attempt(const Work& work);

  // To be called by listeners that take long: a rank silent for [train] hang_timeout counts as hanging.
  virtual void still_at_work() {}

  // Prints a warning, by the engine's Options::warn, if set.
  void warn(const std::string& what) const {
    if (on_warning) on_warning(what);
  }
  Warn on_warning;
  // The rate of the next step by the schedule. Set by Compute.
  std::function<double()> scheduled_lr;
};

}  // namespace tutti
