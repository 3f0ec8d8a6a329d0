#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "commands/inspect.h"
#include "commands/local_train.h"
#include "runtime/error.h"
#include "tests/actors/compute/hungry_model.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

void train_hungry(const std::string& run_dir, const std::string& grad_accum, int64_t later,
                  const std::string& resume = "") {
  LocalRunOptions options;
  options.run_dir = run_dir;
  options.resume = resume;
  options.quiet = true;
  options.prepare = [later](Job& job) {
    job.make_model = [later](const Setting&, const SampleSpec&) {
      HungryModel::Appetite appetite;
      appetite.bytes_a_sample = [later](int call) { return call < 2 ? kMb : later; };
      return std::make_shared<HungryModel>(appetite);
    };
  };
  const std::string budget = "[device]\nmemory_budget_mb = 7.5\n";
  train_in_one_process(recipe_of(mlp(4) + "grad_accum = " + grad_accum + "\n" + budget), options);
}

// The run that resumes from there continues in the smallest microbatches, as they were left.
TEST(OutOfMemoryTest, StepsBeforeATooLargeStepAreSaved) {
  const Scratch folder;
  const std::string whole = folder.path("whole"), cut = folder.path("cut");
  train_hungry(whole, "[[0, 1], [2, 6]]", kMb);
  EXPECT_THROW(train_hungry(cut, "'auto'", 9 * kMb), OperatingError);
  EXPECT_EQ(std::filesystem::read_symlink(cut + "/checkpoints/latest").string(), "ep1-ba2");
  train_hungry(cut, "'auto'", kMb, "auto");
  EXPECT_EQ(inspect_digest(whole), inspect_digest(cut));
}

// On one rank only; the other one waits for its sums.
TEST(OutOfMemoryTest, StepsBeforeATooLargeEvaluationAreSaved) {
  const Scratch folder;
  const auto train = [&](const std::string& run, bool fails, const std::string& resume) {
    LocalRunOptions options;
    options.run_dir = folder.path(run);
    options.resume = resume;
    options.quiet = true;
    options.prepare = [fails](Job& job) {
      job.make_model = [fails, models = std::make_shared<int>(0)](const Setting&, const SampleSpec&) {
        HungryModel::Appetite appetite;
        appetite.fails_in_evaluation = fails && (*models)++ == 1;
        return std::make_shared<HungryModel>(appetite);
      };
    };
    const std::string eval =
        "eval_interval = '2ba'\n[data.eval]\nkind = 'synthetic'\nsamples = 12\nshape = [3]\n";
    train_in_one_process(recipe_of(mlp(4) + eval), options);
  };
  train("whole", false, "");
  EXPECT_THROW(train("cut", true, ""), OperatingError);
  EXPECT_EQ(std::filesystem::read_symlink(folder.path("cut/checkpoints/latest")).string(), "ep0-ba2");
  train("cut", false, "auto");
  EXPECT_EQ(inspect_digest(folder.path("whole")), inspect_digest(folder.path("cut")));
}

// Runs out of memory once, on the rank and after the step that it is made for.
class FailsOnce final : public Callback {
 public:
  FailsOnce(Event event, int rank, int64_t step) : event_(event), rank_(rank), step_(step) {}
  std::string name() const override { return "FailsOnce"; }
  void run_event(Event event, State& state, Logger&) override {
    if (event == event_ && state.topology.rank == rank_ && state.timestamp.batch == step_)
      TORCH_CHECK_WITH(OutOfMemoryError, false, "no room at the event");
  }

 private:
  Event event_;
  int rank_;
  int64_t step_;
};

void train_with(std::shared_ptr<Callback> listener, const std::string& run_dir,
                std::vector<Task> tasks = {}) {
  LocalRunOptions options;
  options.run_dir = run_dir;
  options.resume = "auto";
  options.quiet = true;
  options.prepare = [&](Job& job) {
    job.tasks = tasks;
    job.listeners = [listener](int) {
      Engine::Options listeners;
      if (listener) listeners.callbacks = {listener};
      return listeners;
    };
  };
  const std::string eval =
      "eval_interval = '2ba'\n[data.eval]\nkind = 'synthetic'\nsamples = 12\nshape = [3]\n";
  std::string recipe = mlp(4);
  recipe.replace(recipe.find("'0ba'"), 5, "'1ba'");
  train_in_one_process(recipe_of(recipe + eval), options);
}

TEST(OutOfMemoryTest, AllRanksResumeFromTheLastCheckpointAfterAListenerFails) {
  const Scratch folder;
  train_with(nullptr, folder.path("whole"));
  const std::pair<Event, int64_t> moments[] = {
      {Event::kBatchEnd, 1},  {Event::kBatchEnd, 4}, {Event::kEpochEnd, 2},     {Event::kEpochStart, 2},
      {Event::kEvalStart, 2}, {Event::kEvalEnd, 2},  {Event::kEvalAfterAll, 4}, {Event::kFitEnd, 4}};
  for (const auto& [event, step] : moments) {
    const std::string run = folder.path(std::string(name(event)) + std::to_string(step));
    const auto fails = std::make_shared<FailsOnce>(event, 1, step);
    const std::string why =
        "rank 1: " + std::string(name(event)) + " after step " + std::to_string(step) + ": out of memory";
    const std::string error = message_of<std::exception>([&] { train_with(fails, run); });
    EXPECT_TRUE(error.starts_with(why)) << error;
    train_with(nullptr, run);
    EXPECT_EQ(inspect_digest(folder.path("whole")), inspect_digest(run)) << why;
  }
}

TEST(OutOfMemoryTest, AListenerThatFailsInTheLastTaskIsNotIgnored) {
  const Scratch folder;
  const auto fails = std::make_shared<FailsOnce>(Event::kEvalStandaloneEnd, 1, 4);
  const std::string error =
      message_of<RunError>([&] { train_with(fails, folder.path("run"), {evaluate_on()}); });
  EXPECT_TRUE(error.starts_with("rank 1: eval_standalone_end after step 4: out of memory")) << error;
}

// Keeps the recorded failures of allocations; or knows them beforehand, as a replay does.
class RecordedFailures final : public Recorder {
 public:
  RecordedFailures(std::vector<double>& inputs, bool replays) : inputs_(inputs), replays_(replays) {}
  void record(const TraceEvent& event) override { ring_.record(event); }
  std::vector<TraceEvent> last(int count) const override { return ring_.last(count); }
  using Recorder::input;
  double input(RecordedInput what, double measured) override {
    if (what != RecordedInput::kFailedAllocation) return measured;
    if (!replays_) inputs_.push_back(measured);
    return inputs_.at(next_++);
  }
  std::optional<double> next_input(RecordedInput what) override {
    const bool known = replays_ && what == RecordedInput::kFailedAllocation && next_ < inputs_.size();
    return known ? std::optional(inputs_[next_]) : std::nullopt;
  }

 private:
  RingRecorder ring_;
  std::vector<double>& inputs_;
  std::size_t next_ = 0;
  bool replays_;
};

// Memory outside the meter: the failed allocation has no number.
TEST(OutOfMemoryTest, AnUnmeteredFailureIsRecordedAndReplayed) {
  std::map<int, std::vector<double>> inputs;
  const auto train = [&](HungryModel::Appetite appetite, bool replays) {
    MemoryWorld world = hungry_world(std::move(appetite), 4);
    world.recorder = [&inputs, replays](int rank) {
      return std::make_unique<RecordedFailures>(inputs[rank], replays);
    };
    return world.run("\"auto\"");
  };
  const auto once = [](int call) {
    TORCH_CHECK_WITH(OutOfMemoryError, call != 2, "no room on a device");
    return kMb;
  };
  const auto never = [](int) { return kMb; };
  const auto recorded = train({once}, /*replays=*/false);
  EXPECT_EQ(recorded.error, "");
  EXPECT_EQ(recorded.schedule(), "[[0, 1], [2, 2]]");
  EXPECT_EQ(inputs[0], (std::vector<double>{0, 0, -1, 0, 0}));
  EXPECT_EQ(inputs[1], inputs[0]);
  for (const auto& model : {HungryModel::Appetite{once}, HungryModel::Appetite{never}}) {
    const auto again = train(model, /*replays=*/true);
    EXPECT_EQ(again.error, "");
    EXPECT_EQ(again.schedule(), recorded.schedule());
    EXPECT_EQ(again.losses, recorded.losses);
    EXPECT_TRUE(again.weights == recorded.weights);
  }
}

}  // namespace
}  // namespace tutti
