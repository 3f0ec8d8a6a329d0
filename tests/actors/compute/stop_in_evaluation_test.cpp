#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "commands/inspect.h"
#include "commands/local_train.h"
#include "tests/actors/sleeping_world.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr int kEvalBatches = 1000;

// 4 batches an epoch; the learning rate depends on what evaluations find, and a callback watches the metrics
// of the training.
std::string recipe(const std::string& eval_interval) {
  return "seed = 5\n[model]\nkind = 'mlp'\nhidden = [8]\n"
         "[data.train]\nkind = 'synthetic'\nsamples = 96\nbatch_size = 24\nshape = [6]\n"
         "[data.eval]\nkind = 'synthetic'\nsamples = " +
         std::to_string(24 * kEvalBatches) +
         "\nbatch_size = 24\nshape = [6]\n[optimizer]\nkind = 'sgd'\nlr = 0.1\n"
         "[scheduler]\nkind = 'reduce_lr_on_plateau'\nmonitor = 'metrics/eval/CrossEntropy'\npatience = 0\n"
         "[train]\nmax_duration = '3ep'\neval_interval = '" +
         eval_interval +
         "'\n[[loggers]]\nkind = 'csv'\n[[callbacks]]\nkind = 'early_stopper'\nmonitor = "
         "'MulticlassAccuracy'\ndataloader_label = 'train'\npatience = '100ep'\n"
         "[[callbacks]]\nkind = 'memory_snapshot'\ninterval = '2ep'\nfolder = 'held'\n";
}

// Asks the run to stop from within an evaluation, which from then on takes a second.
class Impatient final : public Callback {
 public:
  Impatient(int64_t step, int64_t& evaluated) : step_(step), evaluated_(evaluated) {}
  std::string name() const override { return "Impatient"; }
  void eval_batch_end(State& state, Logger&) override {
    if (state.topology.rank != 0 || state.timestamp.batch != step_) return;
    evaluated_ = state.eval_timestamp.batch;
    if (evaluated_ == 2) std::ofstream(state.run_dir + "/stop").close();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  int64_t step_;
  int64_t& evaluated_;
};

// Evaluates other weights than those that are trained, as EMA does; exactly undone.
class Negates final : public Algorithm {
 public:
  std::string name() const override { return "Negates"; }
  bool match(Event event, const State&) const override {
    return event == Event::kEvalStart || event == Event::kEvalEnd;
  }
  void apply(Event, State& state, Logger&) override {
    for (auto& view : state.views) view.tensor.detach().neg_();
  }
};

// Counts the evaluations that came to an end: a cut one ends too, and says so.
class Counts final : public Algorithm {
 public:
  std::string name() const override { return "Counts"; }
  bool match(Event event, const State& state) const override {
    return event == Event::kEvalEnd && !state.evaluation_cut;
  }
  void apply(Event, State&, Logger&) override { ended_.add_(1); }
  NamedTensors state_tensors() override { return {{"ended", ended_}}; }

 private:
  at::Tensor ended_ = at::zeros({3});
};

// Batches of rank 0's evaluation after `stop_at` that were looked at.
int64_t train_evaluating(const std::string& eval_interval, const std::string& run_dir, int64_t stop_at) {
  int64_t evaluated = 0;
  LocalRunOptions options;
  options.ranks = 2;
  options.run_dir = run_dir;
  options.resume = "auto";
  options.quiet = true;
  options.live = true;
  options.prepare = [&](Job& job) {
    job.listeners = [&](int) {
      Engine::Options listeners;
      listeners.algorithms = {std::make_shared<Negates>(), std::make_shared<Counts>()};
      listeners.callbacks = {std::make_shared<Impatient>(stop_at, evaluated)};
      return listeners;
    };
  };
  train_in_one_process(recipe_of(recipe(eval_interval)), options);
  return evaluated;
}

// Without what is measured of time and memory.
std::vector<std::string> lines(const std::string& run_dir) {
  std::vector<std::string> found;
  std::istringstream text(read_text(run_dir + "/metrics.jsonl"));
  for (std::string line; std::getline(text, line);) found.push_back(line.substr(0, line.find("\"step_ms")));
  return found;
}

// The checkpoint written at an interval's end.
std::set<std::string> held(const std::string& run_dir) {
  std::set<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(run_dir + "/held"))
    names.insert(file.path().filename());
  return names;
}

class StopInEvaluationTest : public testing::TestWithParam<std::pair<const char*, int64_t>> {};

TEST_P(StopInEvaluationTest, CutsItShortAndLeavesItToTheNextAttempt) {
  const auto [interval, step] = GetParam();
  const Scratch folder;
  train_evaluating(interval, folder.path("whole"), -1);
  EXPECT_LT(train_evaluating(interval, folder.path("parts"), step), kEvalBatches - 1);
  const auto whole = lines(folder.path("whole")), stopped = lines(folder.path("parts"));
  ASSERT_LT(stopped.size(), whole.size());
  EXPECT_TRUE(std::equal(stopped.begin(), stopped.end(), whole.begin()));
  train_evaluating(interval, folder.path("parts"), -1);
  EXPECT_EQ(lines(folder.path("parts")), whole);
  EXPECT_EQ(read_text(folder.path("parts/metrics-rank0.csv")),
            read_text(folder.path("whole/metrics-rank0.csv")));
  EXPECT_EQ(inspect_digest(folder.path("parts")), inspect_digest(folder.path("whole")));
  EXPECT_EQ(held(folder.path("parts")), held(folder.path("whole")));
}

INSTANTIATE_TEST_SUITE_P(WhereverItIs, StopInEvaluationTest,
                         testing::Values(std::pair("3ba", 3),  // in the middle of an epoch
                                         std::pair("4ba", 4),  // after its last batch
                                         std::pair("1ep", 4),  // at its end
                                         std::pair("12ba", 12), std::pair("1ep", 12)));

TEST(StopInLastEvaluationTest, IsDoneAgain) {
  const Scratch folder;
  train_evaluating("5ba", folder.path("whole"), -1);
  EXPECT_LT(train_evaluating("5ba", folder.path("parts"), 12), kEvalBatches - 1);
  train_evaluating("5ba", folder.path("parts"), -1);
  EXPECT_EQ(lines(folder.path("parts")), lines(folder.path("whole")));
}

}  // namespace
}  // namespace tutti
