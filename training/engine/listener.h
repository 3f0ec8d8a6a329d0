#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tutti {

// What a checkpoint holds of an algorithm, a callback or a metric. Default: nothing.
class Stateful {
 public:
  using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

  virtual ~Stateful() = default;

  // Small state as JSON ("" = none), and what takes it back. `restore` throws UserError where it does not
  // fit.
  virtual std::string state() const { return ""; }
  virtual void restore(const std::string&) {}

  // Tensors at one address for their whole life: a checkpoint reads them, a restore writes into them. The
  // same on every rank.
  virtual NamedTensors state_tensors() { return {}; }
};

struct State;

// What listens to a run: an algorithm or a callback.
//
// It may have numbers of its own summed over the ranks in every step. They travel in the step's verdict, 8
// bytes each, and cost no message. How many there are is declared beforehand, so that ranks always agree on
// what they reduce. A lone rank's sums are its own numbers.
class Listener : public Stateful {
 public:
  virtual std::string name() const = 0;  // Composer's: "LabelSmoothing", "SpeedMonitor"

  // How many sums it wants of every step, the same on all ranks. Asked once, after AFTER_LOAD and before
  // FIT_START.
  virtual int64_t reductions(const State&) const { return 0; }

  // Fills in this rank's part of them, [reductions], all zero so far. Once in an attempt at the step, after
  // the last AFTER_BACKWARD of its first pass, on ranks without samples too; not where memory has run out. It
  // comes before the verdict: nothing that lasts may change, nor the gradients, which are being reduced. Its
  // memory counts as the step's, so the attempt is aborted where there is none left.
  virtual void contribute(const State&, std::span<double>) {}

  // The sums of all ranks, [reductions], on every rank: after the verdict and before the first pass's
  // AFTER_TRAIN_BATCH, of a step that is skipped for numbers that are not finite too. An aborted attempt has
  // none; with closures at work a later pass may still void this one, and sums come again.
  virtual void reduced(State&, std::span<const double>) {}
};

}  // namespace tutti
