#include <ATen/ATen.h>

#include <string>

#include "tests/sim/planted_bugs/broken_group.h"
#include "tests/sim/planted_bugs/broken_listener.h"
#include "tests/sim/planted_bugs/planted_bugs.h"
#include "training/state.h"

namespace tutti {
namespace {

// Counts batches. Neither weights nor samples hang on it: only the saved state shows it.
class CountsBatches final : public Algorithm {
 public:
  explicit CountsBatches(bool restores) : restores_(restores) {}
  std::string name() const override { return "CountsBatches"; }
  bool match(Event event, const State&) const override { return event == Event::kBatchEnd; }
  void apply(Event, State&, Logger&) override { ++batches_; }
  std::string state() const override { return std::to_string(batches_); }
  void restore(const std::string& text) override {
    if (restores_) batches_ = std::stoll(text);
  }

 private:
  bool restores_;
  int64_t batches_ = 0;
};

// At the end of a run that was resumed, what the optimizer has gathered is gone.
class EmptiesTheOptimizer final : public Algorithm {
 public:
  std::string name() const override { return "EmptiesTheOptimizer"; }
  bool match(Event event, const State&) const override {
    return event == Event::kFitStart || event == Event::kFitEnd;
  }
  void apply(Event event, State& state, Logger&) override {
    if (event == Event::kFitStart) resumed_ = state.timestamp.batch > 0;
    if (event == Event::kFitStart || !resumed_) return;
    for (const OptimizerState& one : state.optimizer->state()) one.tensor.zero_();
  }

 private:
  bool resumed_ = false;
};

// No rank's vote to stop is heard.
class DropsTheStop final : public GroupBelow {
 public:
  using GroupBelow::GroupBelow;
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override {
    if (label == "verdict") inout.select(0, place_of(&Verdict::stop)).zero_();
    return below_->all_reduce(inout, label);
  }
};

// Ranks that bear a collective's hanging for ten times as long as configured.
SimSeams patient_ranks() {
  SimSeams seams;
  seams.job = [](Job& job, int) { job.settings.train.hang_timeout = std::chrono::seconds(100); };
  return seams;
}

}  // namespace

std::vector<Bug> bugs_of_state() {
  return {
      {"AListenerBeginsAnewOnResuming", "death", algorithm_of_each_rank<CountsBatches>(false),
       algorithm_of_each_rank<CountsBatches>(true), "another state"},
      {"TheOptimizersStateIsSavedEmpty",
       "death",
       algorithm_of_each_rank<EmptiesTheOptimizer>(),
       {},
       "another state"},
      {"AStopRequestIsDropped", "sigterm", group_bug<DropsTheStop>(), {}, "was asked to stop"},
      {"AHangIsNoticedTooLate", "hang", patient_ranks, {}, "a collective hung for"},
  };
}

}  // namespace tutti
