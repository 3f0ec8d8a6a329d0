#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <memory>
#include <optional>
#include <utility>

#include "models/layers/layer.h"
#include "models/layers/norm.h"
#include "models/layers/statistics_rows.h"
#include "models/zoo/factory.h"
#include "tests/sim/planted_bugs/broken_group.h"
#include "tests/sim/planted_bugs/broken_listener.h"
#include "tests/sim/planted_bugs/planted_bugs.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr const char* kFaults = "out_of_memory";

// ---- what an attempt leaves behind

// Noise on the input, from a generator of its own. A retry continues in the stream where the aborted attempt
// was, unless that is restored.
class Noise final : public Algorithm {
 public:
  explicit Noise(bool restores)
      : restores_(restores), generator_(at::make_generator<at::CPUGeneratorImpl>()) {}
  std::string name() const override { return "Noise"; }
  bool match(Event event, const State&) const override { return event == Event::kAfterDataloader; }
  void apply(Event, State& state, Logger&) override {
    if (std::exchange(step_, state.timestamp.batch) != state.timestamp.batch || restores_)
      generator_.set_current_seed(static_cast<uint64_t>(state.timestamp.batch));
    const at::Tensor input = state.batch["input"];
    state.batch.set("input", input + 0.1 * at::randn(input.sizes(), generator_));
  }

 private:
  bool restores_;
  at::Generator generator_;
  int64_t step_ = -1;
};

// Running statistics are taken in by the forward pass, as PyTorch does it, and nothing takes them out again
// when the attempt was aborted.
class KeepsVoidStatistics final : public Algorithm {
 public:
  std::string name() const override { return "KeepsVoidStatistics"; }
  bool match(Event event, const State&) const override {
    return event == Event::kAfterForward || event == Event::kAfterTrainBatch ||
           event == Event::kAfterDataloader;
  }
  void apply(Event event, State& state, Logger&) override {
    if (event == Event::kAfterForward) {
      const auto& found = *state.model->context().statistics;
      of_attempt_.insert(of_attempt_.end(), found.begin(), found.end());
      return;
    }
    if (event == Event::kAfterDataloader)  // of a second attempt, where there was a first
      for (const auto& one : of_attempt_) tutti::apply(one);
    of_attempt_.clear();
  }

 private:
  std::vector<RunningStatistics> of_attempt_;
};

SimSeams with_normalisation(SimSeams seams) {
  seams.job = [more = std::move(seams.job)](Job& job, int start) {
    job.make_model = [](const Setting& section, const SampleSpec& samples) {
      auto model = make_model(section, samples);
      const Slot& first = *model->slots().front();
      const int64_t channels = first.layer().own_parameters().front()->tensor.size(0);
      model->slots().at(1)->fill(std::make_shared<BatchNorm2d>(channels));
      return model;
    };
    if (more) more(job, start);
  };
  return seams;
}

SimSeams aborted_statistics_are_kept() {
  return with_normalisation(algorithm_of_each_rank<KeepsVoidStatistics>()());
}

// The finished work of an aborted attempt is skipped in the next.
class GoesOnWhereItWas final : public Algorithm {
 public:
  std::string name() const override { return "GoesOnWhereItWas"; }
  bool match(Event event, const State&) const override {
    return event == Event::kAfterDataloader || event == Event::kAfterBackward ||
           event == Event::kAfterTrainBatch;
  }
  void apply(Event event, State& state, Logger&) override {
    if (event == Event::kAfterTrainBatch) done_ = 0;
    if (event == Event::kAfterBackward) done_ += state.batch.samples();
    if (event == Event::kAfterDataloader)
      state.batch = state.batch.narrow(done_, state.batch.samples() - done_);
  }

 private:
  int64_t done_ = 0;  // samples
};

// The loss of an aborted attempt is kept, and with it what its backward needs.
class HoldsTheLoss final : public Algorithm {
 public:
  std::string name() const override { return "HoldsTheLoss"; }
  bool match(Event event, const State&) const override {
    return event == Event::kAfterLoss || event == Event::kAfterTrainBatch;
  }
  void apply(Event event, State& state, Logger&) override {
    loss_ = event == Event::kAfterLoss ? state.loss : at::Tensor();
  }

 private:
  at::Tensor loss_;
};

// ---- the ranks' reports to each other

const double* lack_of_memory(const at::Tensor& verdict) {
  return verdict.const_data_ptr<double>() + place_of(&Verdict::out_of_memory);
}

// A rank's lack of memory is heard of only where it is rank 0's.
class HearsOfRankZeroOnly final : public GroupBelow {
 public:
  using GroupBelow::GroupBelow;
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override {
    if (label == "verdict" && rank() != 0) inout.select(0, place_of(&Verdict::out_of_memory)).zero_();
    return below_->all_reduce(inout, label);
  }
};

// A rank that is out of memory does not come to the verdict, in which the others wait for it: Composer's.
class StaysAway final : public GroupBelow {
 public:
  using GroupBelow::GroupBelow;
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override {
    struct Never final : Work {
      CollectiveHeader about;
      bool done() override { return false; }
      bool finite() const override { return true; }
      const CollectiveHeader& header() const override { return about; }
    };
    if (label != "verdict" || *lack_of_memory(inout) == 0) return below_->all_reduce(inout, label);
    return std::make_unique<Never>();
  }
};

}  // namespace

std::vector<Bug> bugs_of_memory() {
  return {
      {"DrawsContinueAfterAnAbortedAttempt", kFaults, algorithm_of_each_rank<Noise>(false),
       algorithm_of_each_rank<Noise>(true)},
      {"StatisticsOfAnAbortedAttemptAreKept", kFaults, aborted_statistics_are_kept,
       [] { return with_normalisation({}); }},
      {"ARetryContinuesWhereTheAttemptWas", kFaults, algorithm_of_each_rank<GoesOnWhereItWas>()},
      {"MemoryOfAnAbortedAttemptIsHeld", kFaults, algorithm_of_each_rank<HoldsTheLoss>(), {}, "still held"},
      {"OnlyRankZerosLackOfMemoryCounts", kFaults, group_bug<HearsOfRankZeroOnly>()},
      {"ARankOutOfMemoryStaysAway", kFaults, group_bug<StaysAway>()},
  };
}

}  // namespace tutti
