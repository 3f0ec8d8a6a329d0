#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <set>

#include "actors/inspect.h"
#include "io/json_line.h"
#include "runtime/error.h"
#include "sim/local_run.h"
#include "tests/actors/hungry_model.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

// Where and when an algorithm has no memory.
struct Failure {
  Event event;
  int64_t step;  // that are done
  std::set<int> ranks = {0};
};

constexpr Event kChanging[] = {Event::kBatchEnd,        Event::kBatchCheckpoint, Event::kEpochEnd,
                               Event::kEpochCheckpoint, Event::kIterationEnd,    Event::kIterationCheckpoint,
                               Event::kIterationStart,  Event::kEpochStart,      Event::kBeforeDataloader,
                               Event::kAfterTrainBatch, Event::kFitEnd};

// Changes what is trained, as hangs on how often it has, and takes its memory first. In evaluations it looks
// only, unless it is to change something there.
class Changing final : public Algorithm {
 public:
  Changing(std::string name, std::optional<Failure> failure, bool evaluations)
      : name_(std::move(name)), failure_(std::move(failure)), evaluations_(evaluations) {}

  std::string name() const override { return name_; }
  bool match(Event event, const State&) const override {
    if (event == Event::kEvalStart || event == Event::kEvalEnd) return evaluations_;
    return std::ranges::count(kChanging, event) > 0;
  }
  void apply(Event event, State& state, Logger&) override {
    const at::NoGradGuard no_grad;
    if (failure_ && event == failure_->event && state.timestamp.batch == failure_->step &&
        failure_->ranks.contains(state.rank))
      TORCH_CHECK_WITH(OutOfMemoryError, false, "no room at the event");
    if (event == Event::kAfterTrainBatch) {
      for (auto& view : state.views) view.grad.mul_(1.5);
      return;
    }
    acted_.add_(1);
    for (auto& view : state.views) view.tensor.detach().mul_(1 + 1e-3 * acted_[0].item<double>());
  }
  NamedTensors state_tensors() override { return {{"acted", acted_}}; }

 private:
  std::string name_;
  std::optional<Failure> failure_;
  bool evaluations_;
  at::Tensor acted_ = at::zeros({5});
};

class ShortAlgorithmTest : public testing::Test {
 protected:
  // Trains with three algorithms, the second of which may fail.
  void train(const std::string& run, const std::optional<Failure>& failure, const std::string& resume = "",
             const std::string& checkpoints = "'0ba'") {
    LocalRunOptions options;
    options.ranks = ranks_;
    options.run_dir = folder_.path(run);
    options.resume = resume;
    options.quiet = true;
    options.prepare = [&](Job& job) {
      job.listeners = [&](int) {
        Engine::Options listeners;
        for (const char* name : {"First", "Second", "Third"})
          listeners.algorithms.push_back(
              std::make_shared<Changing>(name, name == failing_ ? failure : std::nullopt, evaluations_));
        return listeners;
      };
    };
    std::string text = mlp(4);
    text.replace(text.find("'0ba'"), 5, checkpoints);
    text += "iteration_length = '1ep'\neval_interval = '2ba'\n";
    text += "[data.eval]\nkind = 'synthetic'\nsamples = 12\nshape = [3]\n";
    train_in_one_process(recipe_of(text), options);
  }

  std::string newest(const std::string& run) const {
    const auto link = folder_.path(run + "/checkpoints/latest");
    return std::filesystem::is_symlink(link) ? std::filesystem::read_symlink(link).string() : "";
  }

  // It ends with an error that says so, is saved after `step`, and goes on as if nothing had been.
  void expect_nothing_lost(const Failure& failure, const std::string& run) {
    const std::string error = message_of<OperatingError>([&] { train(run, failure); });
    const int first = *failure.ranks.begin();
    const std::string what = std::string(name(failure.event)) + " after step " +
                             std::to_string(failure.step) + ": rank " + std::to_string(first);
    EXPECT_TRUE(error.starts_with(what)) << error;
    EXPECT_NE(error.find("ran out of memory in algorithm " + failing_), std::string::npos) << error;
    EXPECT_TRUE(newest(run).ends_with("-ba" + std::to_string(failure.step))) << run << ": " << newest(run);
    train(run, {}, "auto");
    EXPECT_EQ(inspect_digest(folder_.path("whole")), inspect_digest(folder_.path(run))) << run;
    if (failure.event == Event::kFitEnd) return;  // what it changes is evaluated
    EXPECT_EQ(losses("whole"), losses(run)) << run;
  }

  std::vector<double> losses(const std::string& run) const {
    std::vector<double> all;
    std::istringstream lines(read_text(folder_.path(run) + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);)
      for (const char* key : {"loss", "metrics/eval/CrossEntropy"})
        if (line.find("\"" + std::string(key) + "\"") != std::string::npos)
          all.push_back(json_number(line, key));
    return all;
  }

  Scratch folder_;
  int ranks_ = 2;
  bool evaluations_ = false;
  std::string failing_ = "Second";
};

constexpr std::pair<Event, int64_t> kMoments[] = {
    {Event::kAfterTrainBatch, 1},  {Event::kAfterTrainBatch, 3}, {Event::kBatchEnd, 1},
    {Event::kBatchEnd, 2},         {Event::kBatchCheckpoint, 2}, {Event::kEpochEnd, 2},
    {Event::kEpochCheckpoint, 2},  {Event::kIterationEnd, 2},    {Event::kIterationCheckpoint, 2},
    {Event::kIterationStart, 2},   {Event::kEpochStart, 2},      {Event::kBeforeDataloader, 1},
    {Event::kBeforeDataloader, 2}, {Event::kFitEnd, 4}};

TEST_F(ShortAlgorithmTest, WhatWasTrainedIsSavedByThoseThatHadMemory) {
  train("whole", {});
  for (const auto& [event, step] : kMoments)
    for (const std::set<int>& ranks : {std::set<int>{0}, {1}, {0, 1}}) {
      std::string run = std::string(name(event)) + std::to_string(step);
      for (const int rank : ranks) run += "-" + std::to_string(rank);
      expect_nothing_lost({event, step, ranks}, run);
    }
}

TEST_F(ShortAlgorithmTest, ALoneRankLosesNothing) {
  ranks_ = 1;
  train("whole", {});
  for (const auto& [event, step] : kMoments)
    expect_nothing_lost({event, step}, name(event) + std::to_string(step));
}

TEST_F(ShortAlgorithmTest, AnEvaluationThatHasChangedNothingIsDoneAgain) {
  evaluations_ = true;
  failing_ = "First";
  train("whole", {});
  expect_nothing_lost({Event::kEvalStart, 2, {1}}, "one");
  expect_nothing_lost({Event::kEvalStart, 2, {0, 1}}, "all");
}

// There is no way back. Nor is the checkpoint before it what algorithms made of the weights while it was
// copied.
TEST_F(ShortAlgorithmTest, AnEvaluationThatHasChangedWhatIsTrainedIsNotSaved) {
  evaluations_ = true;
  train("whole", {});
  for (const Event event : {Event::kEvalStart, Event::kEvalEnd}) {
    const std::string run = name(event);
    const std::string error = message_of<OperatingError>([&] {
      train(run, Failure{event, 2, {1}}, "", "'1ba'");
    });
    EXPECT_TRUE(error.starts_with(name(event) + std::string(" after step 2: rank 1"))) << error;
    EXPECT_EQ(newest(run), "ep0-ba1");
    train(run, {}, "auto", "'1ba'");
    EXPECT_EQ(inspect_digest(folder_.path("whole")), inspect_digest(folder_.path(run))) << run;
  }
}

}  // namespace
}  // namespace tutti
