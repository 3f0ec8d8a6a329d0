#include "job/task.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "commands/inspect.h"
#include "commands/local_train.h"
#include "runtime/error.h"
#include "tests/actors/sleeping_world.h"
#include "training/engine/callback.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::string task_recipe(const std::string& max_duration) {
  const std::string data = "kind = 'synthetic'\nshape = [6]\nbatch_size = 24\n";
  return "seed = 5\n[model]\nkind = 'mlp'\nhidden = [8]\n[data.train]\nsamples = 96\n" + data +
         "[data.eval]\nsamples = 40\n" + data +
         "[optimizer]\nkind = 'adamw'\n[checkpoint]\ninterval = '1ba'\n" +
         "[train]\neval_interval = '0ep'\nmax_duration = '" + max_duration + "'\n";
}

// Counts events, on rank 0, and may fail at the end of a batch.
class EventCounts final : public Callback {
 public:
  EventCounts(std::map<Event, int>& seen, int64_t fails_after) : seen_(seen), fails_after_(fails_after) {}
  std::string name() const override { return "EventCounts"; }
  void run_event(Event event, State& state, Logger& logger) override {
    if (state.topology.rank == 0) ++seen_[event];
    if (event == Event::kBatchEnd && state.timestamp.batch == fails_after_)
      throw OperatingError("the lights go out");
    Callback::run_event(event, state, logger);
  }

 private:
  std::map<Event, int>& seen_;
  int64_t fails_after_;
};

struct TaskRun {
  std::string run_dir;
  std::vector<Task> tasks = {};
  std::string max_duration = "2ep";
  std::string resume = "";
  int64_t fails_after = -1;
  int ranks = 2;
};

std::map<Event, int> carried_out(const TaskRun& run) {
  std::map<Event, int> seen;
  LocalRunOptions options;
  options.ranks = run.ranks;
  options.run_dir = run.run_dir;
  options.resume = run.resume;
  options.quiet = true;
  options.prepare = [&](Job& job) {
    job.tasks = run.tasks;
    job.listeners = [&](int) {
      Engine::Options listeners;
      listeners.callbacks = {std::make_shared<EventCounts>(seen, run.fails_after)};
      return listeners;
    };
  };
  train_in_one_process(recipe_of(task_recipe(run.max_duration)), options);
  return seen;
}

TEST(TaskTest, TrainingOnIsTheLongerTraining) {
  const Scratch folder;
  carried_out({.run_dir = folder.path("whole"), .max_duration = "18ba"});
  const auto seen =
      carried_out({.run_dir = folder.path("parts"), .tasks = {train_on("1ep"), train_on("6ba")}});
  EXPECT_EQ(inspect_digest(folder.path("parts")), inspect_digest(folder.path("whole")));
  EXPECT_EQ(seen.at(Event::kInit), 1);
  EXPECT_EQ(seen.at(Event::kFitStart), 3);
  EXPECT_EQ(seen.at(Event::kFitEnd), 3);
}

TEST(TaskTest, EvaluationsAndPredictionsAreOfTheWeightsThatThereAre) {
  const Scratch folder;
  std::vector<at::Tensor> before, after;
  const auto keep = [](std::vector<at::Tensor>& in) {
    return [&in](const Outputs& outputs) { in.push_back(outputs.tensor().clone()); };
  };
  const auto seen = carried_out({.run_dir = folder.path("run"),
                                 .tasks = {evaluate_on(), predict_on("eval", keep(before)), train_on("1ba"),
                                           evaluate_on("eval"), predict_on("eval", keep(after))}});
  EXPECT_EQ(seen.at(Event::kEvalStandaloneStart), 2);
  EXPECT_EQ(seen.at(Event::kEvalStandaloneEnd), 2);
  EXPECT_EQ(seen.at(Event::kPredictStart), 2);
  ASSERT_EQ(before.size(), 2u);  // 24 + 16 samples
  EXPECT_EQ(at::cat(before).size(0), 40);
  EXPECT_FALSE(at::cat(before).equal(at::cat(after)));
  const std::string metrics = read_text(folder.path("run/metrics.jsonl"));
  EXPECT_THAT(metrics, HasSubstr("\"step\": 8, \"epoch\": 2, \"metrics/eval/MulticlassAccuracy\""));
  EXPECT_THAT(metrics, HasSubstr("\"step\": 9, \"epoch\": 3, \"metrics/eval/MulticlassAccuracy\""));
}

// A resumed run does the remaining tasks, and comes to the same. Its newest checkpoint is at most two steps
// old.
TEST(TaskTest, AreDoneOnceThoughTheRunIsResumed) {
  const Scratch folder;
  const std::vector<Task> tasks = {evaluate_on(), train_on("1ep"), predict_on(), train_on("4ba")};
  carried_out({.run_dir = folder.path("whole"), .tasks = tasks});
  for (const int64_t fails_after : {3, 11, 16}) {
    const std::string run = folder.path("parts-" + std::to_string(fails_after));
    EXPECT_THROW(carried_out({.run_dir = run, .tasks = tasks, .fails_after = fails_after}), OperatingError);
    const auto seen = carried_out({.run_dir = run, .tasks = tasks, .resume = "auto"});
    EXPECT_EQ(seen.count(Event::kEvalStandaloneStart), fails_after == 3 ? 1u : 0u) << fails_after;
    EXPECT_EQ(seen.count(Event::kPredictStart), fails_after < 16 ? 1u : 0u) << fails_after;
    EXPECT_EQ(inspect_digest(run), inspect_digest(folder.path("whole"))) << fails_after;
  }
  const auto seen = carried_out({.run_dir = folder.path("whole"), .tasks = tasks, .resume = "auto"});
  EXPECT_EQ(seen.count(Event::kBatchStart), 0u) << "it was over";
}

// Only rank 0 predicts, and then has the same state as the others.
TEST(TaskTest, APredictionLeavesNoTrace) {
  const Scratch folder;
  std::vector<std::string> labels(2);
  struct Label final : Callback {
    explicit Label(std::string& into) : into(into) {}
    std::string name() const override { return "Label"; }
    void batch_start(State& state, Logger&) override { into = state.dataloader_label; }
    std::string& into;
  };
  LocalRunOptions options;
  options.run_dir = folder.path("run");
  options.quiet = true;
  options.prepare = [&](Job& job) {
    job.tasks = {predict_on(), train_on("1ba")};
    job.listeners = [&](int rank) {
      Engine::Options listeners;
      listeners.callbacks = {std::make_shared<Label>(labels[rank])};
      return listeners;
    };
  };
  train_in_one_process(recipe_of(task_recipe("1ep")), options);
  EXPECT_EQ(labels[0], "train");
  EXPECT_EQ(labels[1], "train");
}

// Tasks follow the training that the recipe describes: a longer one is done first.
TEST(TaskTest, ALongerTrainingComesBeforeThem) {
  const Scratch folder;
  carried_out({.run_dir = folder.path("run"), .tasks = {train_on("2ba")}});
  const auto seen = carried_out(
      {.run_dir = folder.path("run"), .tasks = {train_on("2ba")}, .max_duration = "3ep", .resume = "auto"});
  EXPECT_EQ(seen.at(Event::kBatchStart), 2 + 2);  // from 10 to 12, and on to 14
  const auto plain = carried_out({.run_dir = folder.path("run"), .max_duration = "4ep", .resume = "auto"});
  EXPECT_EQ(plain.at(Event::kBatchStart), 2);
}

TEST(TaskTest, ImpossibleTasksAreRefused) {
  const std::vector<Evaluator> evaluators(1, Evaluator{.label = "eval"});
  EXPECT_THAT([&] { check_tasks({evaluate_on("evil")}, evaluators, false); },
              ThrowsMessage<UserError>(HasSubstr("names the evaluator 'evil'; there are: eval")));
  EXPECT_THAT([&] { check_tasks({predict_on("evil")}, evaluators, false); },
              ThrowsMessage<UserError>(HasSubstr("'evil'")));
  EXPECT_THAT([&] { check_tasks({evaluate_on()}, {}, false); },
              ThrowsMessage<UserError>(HasSubstr("no evaluator")));
  for (const char* text : {"0.5dur", "0ep", "1iter"})
    EXPECT_THAT(([&, text] { check_tasks({train_on(text)}, evaluators, true); }),
                ThrowsMessage<UserError>(HasSubstr("trains on for " + std::string(text))));
  EXPECT_THAT([&] { check_tasks({train_on("soon")}, evaluators, true); }, testing::Throws<UserError>());
  EXPECT_THAT([&] { check_tasks({train_on("100tok")}, evaluators, false); },
              ThrowsMessage<UserError>(HasSubstr("the model counts no tokens")));
  EXPECT_NO_THROW(check_tasks({evaluate_on(), predict_on(), train_on("1ba")}, evaluators, false));
}

}  // namespace
}  // namespace tutti
