#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "commands/inspect.h"
#include "commands/local_train.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "io/formats/json_line.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "tests/actors/compute/hungry_model.h"
#include "tests/actors/sleeping_world.h"
#include "training/loggers/logger_destination.h"
#include "training/optimizers/optimizer.h"

namespace tutti {
namespace {

// When which algorithm has no memory.
struct Failure {
  Event event;
  int64_t step;                      // that are done
  std::map<int, std::string> whose;  // by rank
};

constexpr Event kChanging[] = {Event::kBatchEnd,        Event::kBatchCheckpoint, Event::kEpochEnd,
                               Event::kEpochCheckpoint, Event::kIterationEnd,    Event::kIterationCheckpoint,
                               Event::kIterationStart,  Event::kEpochStart,      Event::kBeforeDataloader,
                               Event::kAfterTrainBatch, Event::kFitEnd};

// Changes what is trained, as hangs on how often it has, and takes its memory first. In evaluations it looks
// only, unless it is to change something there.
class Changing final : public Algorithm {
 public:
  Changing(std::string name, const std::optional<Failure>& failure, bool evaluations)
      : name_(std::move(name)), failure_(failure), evaluations_(evaluations) {}

  std::string name() const override { return name_; }
  bool match(Event event, const State&) const override {
    const bool evaluates = event == Event::kEvalStart || event == Event::kEvalEnd;
    if (evaluates) return evaluations_ || (failure_ && failure_->event == event);
    return std::ranges::count(kChanging, event) > 0;
  }
  void apply(Event event, State& state, Logger& logger) override {
    const at::NoGradGuard no_grad;
    if (fails(event, state)) TORCH_CHECK_WITH(OutOfMemoryError, false, "no room at the event");
    if (!evaluations_ && event == Event::kEvalStart) return;
    if (event == Event::kAfterTrainBatch) {
      for (auto& view : state.views) view.grad.mul_(1.5);
      return;
    }
    const bool at_end = event >= Event::kBatchEnd && event < Event::kEvalBeforeAll;
    const double of_step = at_end ? state.train_loss + state.optimizer->lr() : 0;
    logger.log_metrics({{name_ + "/" + tutti::name(event), acted_[0].item<double>() + of_step}});
    acted_.add_(1);
    for (auto& view : state.views) view.tensor.detach().mul_(1 + 1e-3 * acted_[0].item<double>());
  }
  NamedTensors state_tensors() override { return {{"acted", acted_}}; }

 private:
  bool fails(Event event, const State& state) const {
    if (!failure_ || event != failure_->event || state.timestamp.batch != failure_->step) return false;
    const auto mine = failure_->whose.find(state.rank);
    return mine != failure_->whose.end() && mine->second == name_;
  }

  std::string name_;
  std::optional<Failure> failure_;
  bool evaluations_;
  at::Tensor acted_ = at::zeros({5});
};

// What is logged, of all starts, but what is of a clock or of a step that is about to begin.
class Keeps final : public LoggerDestination {
 public:
  explicit Keeps(std::set<std::string>& lines) : lines_(lines) {}
  std::string name() const override { return "Keeps"; }
  void log_metrics(const LoggedMetrics& metrics, const LogTime& time) override {
    for (const auto& [name, value] : metrics)
      if (counts(name)) lines_.insert(std::to_string(time.step) + " " + name + " " + std::to_string(value));
  }

 private:
  static bool counts(const std::string& name) {
    return std::ranges::none_of(std::array{"time/", "_start", "before_dataloader"},
                                [&](const char* part) { return name.find(part) != std::string::npos; });
  }

  std::set<std::string>& lines_;
};

class ShortAlgorithmTest : public testing::Test {
 protected:
  // Trains with three algorithms, which may fail.
  void train(const std::string& run, const std::optional<Failure>& failure, const std::string& resume = "",
             const std::string& checkpoints = "'0ba'") {
    LocalRunOptions options;
    options.ranks = ranks_;
    options.schedule_seed = schedule_seed_;
    options.run_dir = folder_.path(run);
    options.resume = resume;
    options.quiet = true;
    options.prepare = [&](Job& job) {
      job.listeners = [&](int) {
        Engine::Options listeners;
        for (const char* name : {"First", "Second", "Third"})
          listeners.algorithms.push_back(std::make_shared<Changing>(name, failure, evaluations_));
        listeners.destinations = {std::make_shared<Keeps>(logged_[run])};
        return listeners;
      };
    };
    std::string text = mlp(4);
    text.replace(text.find("'0ba'"), 5, checkpoints);
    text += "iteration_length = '1ep'\neval_interval = '" + eval_interval_ + "'\n";
    text += "[scheduler]\nkind = 'linear'\n[data.eval]\nkind = 'synthetic'\nsamples = 12\nshape = [3]\n";
    train_in_one_process(recipe_of(text), options);
  }

  std::string newest(const std::string& run) const {
    const auto link = folder_.path(run + "/checkpoints/latest");
    return std::filesystem::is_symlink(link) ? std::filesystem::read_symlink(link).string() : "";
  }

  // It ends with an error that says so, is saved after `step`, and goes on as if nothing had been.
  void expect_nothing_lost(const Failure& failure, const std::string& run) {
    const std::string error = message_of<OperatingError>([&] { train(run, failure); });
    const auto& [rank, algorithm] = *failure.whose.begin();
    const std::string what = std::string(name(failure.event)) + " after step " +
                             std::to_string(failure.step) + ": rank " + std::to_string(rank);
    EXPECT_TRUE(error.starts_with(what)) << error;
    EXPECT_NE(error.find("ran out of memory in algorithm " + algorithm + ","), std::string::npos) << error;
    EXPECT_TRUE(newest(run).ends_with("-ba" + std::to_string(failure.step))) << run << ": " << newest(run);
    train(run, {}, "auto");
    EXPECT_EQ(inspect_digest(folder_.path("whole")), inspect_digest(folder_.path(run))) << run;
    if (failure.event == Event::kFitEnd) return;  // what it changes is evaluated
    EXPECT_EQ(losses("whole"), losses(run)) << run;
    // Of the event what rank 0 has done is logged, though others may have come further.
    const std::string of_event = std::string("/") + name(failure.event);
    for (const auto& line : logged_["whole"])
      EXPECT_TRUE(logged_[run].contains(line) || line.find(of_event) != std::string::npos)
          << run << ": " << line;
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
  std::map<std::string, std::set<std::string>> logged_;  // by run
  int ranks_ = 2;
  uint64_t schedule_seed_ = 0;
  bool evaluations_ = false;
  std::string eval_interval_ = "2ba";
};

constexpr std::pair<Event, int64_t> kMoments[] = {
    {Event::kAfterTrainBatch, 1},  {Event::kAfterTrainBatch, 3}, {Event::kBatchEnd, 1},
    {Event::kBatchEnd, 2},         {Event::kBatchCheckpoint, 2}, {Event::kEpochEnd, 2},
    {Event::kEpochCheckpoint, 2},  {Event::kIterationEnd, 2},    {Event::kIterationCheckpoint, 2},
    {Event::kIterationStart, 2},   {Event::kEpochStart, 2},      {Event::kBeforeDataloader, 1},
    {Event::kBeforeDataloader, 2}, {Event::kFitEnd, 4}};

std::string called(Event event, int64_t step) { return name(event) + std::to_string(step); }

TEST_F(ShortAlgorithmTest, WhatWasTrainedIsSavedByThoseThatCameFurthest) {
  train("whole", {});
  const std::map<int, std::string> on_ranks[] = {
      {{0, "Second"}}, {{1, "First"}}, {{0, "Second"}, {1, "Second"}}, {{0, "First"}, {1, "Third"}}};
  for (const auto& [event, step] : kMoments)
    for (std::size_t i = 0; i < std::size(on_ranks); ++i)
      expect_nothing_lost({event, step, on_ranks[i]}, called(event, step) + "-" + std::to_string(i));
}

TEST_F(ShortAlgorithmTest, ALoneRankLosesNothing) {
  ranks_ = 1;
  train("whole", {});
  for (const auto& [event, step] : kMoments)
    expect_nothing_lost({event, step, {{0, "Second"}}}, called(event, step));
}

// Callbacks and what is monitored know of the steps that were done.
TEST_F(ShortAlgorithmTest, OfAStepThatIsVoidNothingIsSaved) {
  const auto state = [this](const std::string& run, const std::string& checkpoint) {
    const std::string folder = folder_.path(run + "/checkpoints/" + checkpoint);
    RunState saved = RunState::from_json(read_manifest(PosixDisk(), folder).state);
    saved.last_step.seconds = 0;
    return saved;
  };
  train("each", {}, "", "'1ba'\nkeep = 9");
  for (int64_t step = 1; step < 4; ++step) {
    const std::string run = std::to_string(step);
    EXPECT_THROW(train(run, Failure{Event::kAfterTrainBatch, step, {{1, "Second"}}}), OperatingError);
    const RunState saved = state(run, newest(run)), right = state("each", newest(run));
    EXPECT_EQ(saved.last_step, right.last_step) << run;
    EXPECT_EQ(saved.metrics.at("train/MulticlassAccuracy"), right.metrics.at("train/MulticlassAccuracy"));
    EXPECT_GT(saved.last_step.loss, 0);
    EXPECT_GT(saved.last_step.lr, 0);
  }
}

TEST_F(ShortAlgorithmTest, NoScheduleOfShortagesHangs) {
  ranks_ = 3;
  train("whole", {});
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    std::mt19937_64 random(seed);
    const auto [event, step] = kMoments[random() % std::size(kMoments)];
    Failure failure{event, step, {}};
    while (failure.whose.empty())
      for (int rank = 0; rank < ranks_; ++rank)
        if (random() % 2 == 0) failure.whose[rank] = std::array{"First", "Second", "Third"}[random() % 3];
    schedule_seed_ = seed;
    expect_nothing_lost(failure, "seed " + std::to_string(seed));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST_F(ShortAlgorithmTest, AnEvaluationThatHasChangedNothingIsDoneAgain) {
  evaluations_ = true;
  train("whole", {});
  expect_nothing_lost({Event::kEvalStart, 2, {{1, "First"}}}, "one");
  expect_nothing_lost({Event::kEvalStart, 2, {{0, "First"}, {1, "First"}}}, "all");
}

// What has acted at FIT_END does not once more because of what comes after it.
TEST_F(ShortAlgorithmTest, TheEvaluationAtTheEndComesAfterTheEnd) {
  eval_interval_ = "3ba";
  train("whole", {});
  const Failure failure{Event::kEvalStart, 4, {{1, "First"}}};
  const std::string error = message_of<OperatingError>([&] { train("cut", failure); });
  EXPECT_TRUE(error.starts_with("eval_start after step 4: rank 1")) << error;
  train("cut", {}, "auto");
  EXPECT_EQ(losses("cut"), losses("whole"));
}

// Which algorithms act is asked outside of what ranks agree on.
class Unsure final : public Algorithm {
 public:
  std::string name() const override { return "Unsure"; }
  bool match(Event event, const State& state) const override {
    if (event == Event::kBatchEnd && state.rank == 1)
      TORCH_CHECK_WITH(OutOfMemoryError, false, "no room to tell");
    return event == Event::kBatchEnd;
  }
  void apply(Event, State&, Logger&) override {}
};

TEST(OutOfMemoryTest, WhereItIsAskedWhichAlgorithmsActItIsAClearStop) {
  MemoryWorld world{.recipe = mlp(3)};
  world.listeners = [](int) { return Engine::Options{.algorithms = {std::make_shared<Unsure>()}}; };
  const std::string error = world.run("1").error;
  EXPECT_NE(error.find("out of memory where algorithms say whether they act at batch_end"), std::string::npos)
      << error;
}

// At the last step, with algorithms that act when it is over.
TEST_F(ShortAlgorithmTest, WhatComesAfterTheLastEvaluationIsSaved) {
  train("whole", {});
  const Failure failure{Event::kEvalStart, 4, {{0, "First"}, {1, "First"}}};
  EXPECT_THROW(train("cut", failure), OperatingError);
  train("cut", {}, "auto");
  EXPECT_EQ(inspect_digest(folder_.path("whole")), inspect_digest(folder_.path("cut")));
}

// There is no way back. Nor is the checkpoint before it what algorithms made of the weights while it was
// copied.
TEST_F(ShortAlgorithmTest, AnEvaluationThatHasChangedWhatIsTrainedIsNotSaved) {
  evaluations_ = true;
  train("whole", {});
  for (const Event event : {Event::kEvalStart, Event::kEvalEnd}) {
    const std::string run = name(event);
    const std::string error = message_of<OperatingError>([&] {
      train(run, Failure{event, 2, {{1, "Second"}}}, "", "'1ba'");
    });
    EXPECT_TRUE(error.starts_with(name(event) + std::string(" after step 2: rank 1"))) << error;
    EXPECT_EQ(newest(run), "ep0-ba1");
    train(run, {}, "auto", "'1ba'");
    EXPECT_EQ(inspect_digest(folder_.path("whole")), inspect_digest(folder_.path(run))) << run;
  }
}

}  // namespace
}  // namespace tutti
