#include "sim/faults/scarce_listeners.h"

#include <c10/util/Exception.h>

#include <memory>
#include <utility>

#include "sim/faults/fault_plan.h"
#include "training/state.h"

namespace tutti {
namespace {

// Of a training run: where ranks agree that algorithms could act. What runs out of memory within forward,
// backward or an evaluated batch makes their parts smaller, as any allocation there does.
bool is_outside(Event event) {
  switch (event) {
    case Event::kFitStart:
    case Event::kIterationStart:
    case Event::kEpochStart:
    case Event::kBeforeDataloader:
    case Event::kAfterTrainBatch:
    case Event::kBatchEnd:
    case Event::kBatchCheckpoint:
    case Event::kEpochEnd:
    case Event::kEpochCheckpoint:
    case Event::kIterationEnd:
    case Event::kIterationCheckpoint:
    case Event::kFitEnd:
    case Event::kEvalBeforeAll:
    case Event::kEvalStart:
    case Event::kEvalEnd:
    case Event::kEvalAfterAll:
      return true;
    default:
      return false;
  }
}

void require_memory(const Scarcity& scarcity, const State& state, const char* phase) {
  if (scarcity(state, phase))
    TORCH_CHECK_WITH(OutOfMemoryError, false, "the simulator has no memory for this ", phase);
}

class ScarceAlgorithm final : public Algorithm {
 public:
  ScarceAlgorithm(std::string name, Needs needs, const Scarcity& scarcity)
      : name_(std::move(name)), needs_(needs), scarcity_(scarcity) {}
  std::string name() const override { return name_; }
  Needs needs() const override { return needs_; }
  bool match(Event event, const State&) const override { return is_outside(event); }
  void apply(Event, State& state, Logger&) override { require_memory(scarcity_, state, kAlgorithmPhase); }

 private:
  std::string name_;
  Needs needs_;
  Scarcity scarcity_;
};

class ScarceCallback final : public Callback {
 public:
  explicit ScarceCallback(const Scarcity& scarcity) : scarcity_(scarcity) {}
  std::string name() const override { return "ScarceCallback"; }
  void run_event(Event event, State& state, Logger&) override {
    if (is_outside(event)) require_memory(scarcity_, state, kCallbackPhase);
  }

 private:
  Scarcity scarcity_;
};

}  // namespace

Listeners with_scarce_listeners(Listeners listeners, Scarcity scarcity) {
  return [listeners = std::move(listeners), scarcity = std::move(scarcity)](int rank) {
    Engine::Options all = listeners ? listeners(rank) : Engine::Options();
    all.algorithms.push_back(
        std::make_shared<ScarceAlgorithm>(kFirstAlgorithm, Needs{.first = true}, scarcity));
    all.algorithms.push_back(std::make_shared<ScarceAlgorithm>("ScarceAfter", Needs{.last = true}, scarcity));
    all.callbacks.push_back(std::make_shared<ScarceCallback>(scarcity));
    return all;
  };
}

}  // namespace tutti
