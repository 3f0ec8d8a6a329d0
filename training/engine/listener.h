#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tutti {

// State of an algorithm or a callback in checkpoints. Default: none.
class Stateful {
 public:
  using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

  virtual ~Stateful() = default;

  // Small state as JSON, "" = none. `restore` throws UserError if the JSON does not fit.
  virtual std::string state() const { return ""; }
  virtual void restore(const std::string&) {}

  // Tensors that keep their addresses, which a checkpoint reads and a restore writes. Equal on all ranks,
  // except tensors with the name and sizes of a view (State::views), which have the view's region.
  virtual NamedTensors state_tensors() { return {}; }
};

struct State;

// An algorithm or a callback.
//
// A listener may have numbers summed over all ranks in every step. The numbers travel in the step's verdict,
// 8 bytes each, without a message of their own. Their count is declared beforehand, so that ranks always
// agree. With one rank the sums are the rank's numbers.
class Listener : public Stateful {
 public:
  virtual std::string name() const = 0;  // Composer's: "LabelSmoothing", "SpeedMonitor"

  // Throws UserError if the run lacks a part that the listener needs at any time. The model is built, and
  // surgery is done. Called before AFTER_LOAD, and by `tutti check`.
  virtual void require(const State&) const {}

  // Number of sums per step, equal on all ranks. Asked once, between AFTER_LOAD and FIT_START.
  virtual int64_t reductions(const State&) const { return 0; }

  // Fills in this rank's numbers, [reductions], initially zero. Called once per attempt, after the last
  // AFTER_BACKWARD of the first pass, also on ranks without samples; not called after running out of memory.
  // Where batches are cut into grains, called after AFTER_BACKWARD of each grain, for its numbers.
  // Since the verdict is still to come, lasting state and gradients (which are being reduced) must not
  // change. Memory used here counts for the step: running out aborts the attempt.
  virtual void contribute(const State&, std::span<double>) {}

  // Receives the sums of all ranks, [reductions], on every rank: after the verdict and before
  // AFTER_TRAIN_BATCH of the first pass, also for a step that is skipped because of non-finite gradients.
  // Not called for an aborted attempt. With closures a later pass may abort the attempt after this call;
  // then the sums come again.
  virtual void reduced(State&, std::span<const double>) {}
};

}  // namespace tutti
