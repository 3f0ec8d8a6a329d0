// Tests of every algorithm: one row of rows.cpp each.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "algorithms/catalog.h"
#include "algorithms/factory.h"
#include "commands/inspect.h"
#include "commands/local_train.h"
#include "io/json/json_line.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "sim/replay/replay.h"
#include "sim/simulate/simulation.h"
#include "tests/algorithms/rows.h"
#include "tests/runtime/nightly.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

constexpr int kComparedSteps = 30;

Setting recipe(const AlgorithmRow& row, bool with_algorithm, const std::string& more = "") {
  return resolve_recipe(parse_recipe(recipe_text(row, with_algorithm, more), "table.toml"));
}

// With evaluations and checkpoints.
std::string whole_run(const AlgorithmRow& row) { return evaluated(row) + "[checkpoint]\ninterval = '5ba'\n"; }

struct Trained {
  std::vector<double> losses;   // of each step
  at::Tensor weights;           // all of them, after kComparedSteps
  std::string digest;           // of the weights in the end
  std::string last_evaluation;  // as logged; "" = none
};

std::vector<double> losses_in(const std::vector<std::string>& lines) {
  std::vector<double> losses;
  for (const std::string& line : lines)
    if (line.find("\"loss\"") != std::string::npos) losses.push_back(json_number(line, "loss"));
  return losses;
}

at::Tensor weights_of(const Trainee& trainee) {
  std::vector<at::Tensor> flat;
  for (const auto& [name, parameter] : trainee.parameters)
    flat.push_back(parameter->tensor.detach().flatten().to(at::kFloat));
  return at::cat(flat);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

using Prepare = std::function<void(Job&)>;

Trained train(const AlgorithmRow& row, const Setting& recipe, const Prepare& prepare = {},
              const std::string& run_dir = Scratch().path(), const std::string& resume = "",
              bool is_recorded = false) {
  Trained trained;
  LocalRunOptions options{
      .ranks = 1, .run_dir = run_dir, .resume = resume, .live = is_recorded, .quiet = true};
  options.prepare = [&](Job& job) {
    if (row.make_model) job.make_model = row.make_model;
    if (prepare) prepare(job);
    job.before_step = [&, observe = job.before_step](int rank, int64_t step, const Trainee& trainee,
                                                     const Batch& batch) {
      if (step == kComparedSteps + 1) trained.weights = weights_of(trainee);
      if (observe) observe(rank, step, trainee, batch);
    };
  };
  train_in_one_process(recipe, options);
  const std::string logged = read_text(run_dir + "/metrics.jsonl");
  trained.losses = losses_in(lines_of(logged));
  trained.digest = inspect_digest(run_dir);
  const size_t evaluation = logged.rfind("\"metrics/eval");
  if (evaluation != std::string::npos) trained.last_evaluation = logged.substr(evaluation);
  return trained;
}

double mean(const std::vector<double>& values, size_t from, size_t count) {
  return std::accumulate(values.begin() + from, values.begin() + from + count, 0.0) /
         static_cast<double>(count);
}

using Acted = std::vector<std::pair<Event, int64_t>>;

// Does what another algorithm does, and writes down when.
class Recorded final : public Algorithm {
 public:
  Recorded(std::shared_ptr<Algorithm> algorithm, Acted& acted)
      : inner_(std::move(algorithm)), acted_(acted) {}
  std::string name() const override { return inner_->name(); }
  Needs needs() const override { return inner_->needs(); }
  bool match(Event event, const State& state) const override { return inner_->match(event, state); }
  void apply(Event event, State& state, Logger& logger) override {
    acted_.emplace_back(event, state.timestamp.batch);
    inner_->apply(event, state, logger);
  }
  void require(const State& state) const override { inner_->require(state); }
  bool try_on(const State& state, Batch& sample) const override { return inner_->try_on(state, sample); }
  Event tried_at() const override { return inner_->tried_at(); }
  int64_t forwards(const State& state) const override { return inner_->forwards(state); }
  std::string state() const override { return inner_->state(); }
  void restore(const std::string& text) override { inner_->restore(text); }
  NamedTensors state_tensors() override { return inner_->state_tensors(); }
  int64_t reductions(const State& state) const override { return inner_->reductions(state); }
  void contribute(const State& state, std::span<double> sums) override { inner_->contribute(state, sums); }
  void reduced(State& state, std::span<const double> sums) override { inner_->reduced(state, sums); }

 private:
  std::shared_ptr<Algorithm> inner_;
  Acted& acted_;
};

// Compares each batch with its values before the step.
class UnwrittenBatches {
 public:
  void begin(const Batch& batch) {
    end();
    leaves_ = batch.leaves();
    copies_.clear();
    for (const auto& [name, leaf] : leaves_) copies_.push_back(leaf.clone());
  }
  void end() {
    for (size_t i = 0; i < leaves_.size(); ++i)
      unwritten_ = unwritten_ && at::equal(leaves_[i].second, copies_[i]);
  }
  bool unwritten() const { return unwritten_; }

 private:
  std::vector<std::pair<std::string, at::Tensor>> leaves_;
  std::vector<at::Tensor> copies_;
  bool unwritten_ = true;
};

// The moments of a row in the order of time.
Acted expected(const AlgorithmRow& row) {
  Acted all;
  for (const Acts& acts : row.acts)
    for (int step = acts.from; step <= acts.to; step += acts.every) all.emplace_back(acts.event, step);
  std::ranges::stable_sort(all, {}, [](const auto& one) { return one.second; });
  return all;
}

std::multiset<std::string> texts(const Acted& acted) {
  std::multiset<std::string> found;
  for (const auto& [event, step] : acted) found.insert(std::string(name(event)) + " " + std::to_string(step));
  return found;
}

// A training in one process, in which the algorithm's acts were written down.
struct Whole {
  Trained trained;
  Acted acted;
  bool unwritten = true;  // every batch was what it had been, when its step was over
};

Whole train_whole(const AlgorithmRow& row) {
  Whole whole;
  UnwrittenBatches batches;
  const Setting entry = recipe(row, true).at("algorithms").array().back();
  whole.trained = train(row, recipe(row, false, whole_run(row)), [&](Job& job) {
    job.before_step = [&](int, int64_t, const Trainee&, const Batch& batch) { batches.begin(batch); };
    job.listeners = [&](int) {
      Engine::Options options;
      options.algorithms = {std::make_shared<Recorded>(make_algorithm(entry), whole.acted)};
      return options;
    };
  });
  batches.end();
  whole.unwritten = batches.unwritten();
  return whole;
}

class AlgorithmTable : public testing::TestWithParam<AlgorithmRow> {
 protected:
  // Trained by the first test that asks.
  const Whole& whole() const {
    static std::map<std::string, Whole> all;
    const auto found = all.find(name_of(row_));
    return found != all.end() ? found->second : all[name_of(row_)] = train_whole(row_);
  }
  // As whole(), but without the algorithm; one for all rows with this training.
  const Trained& without() const {
    static std::map<std::string, Trained> all;
    const std::string key = row_.training + row_.train + (row_.make_model ? name_of(row_) : "");
    const auto found = all.find(key);
    return found != all.end() ? found->second : all[key] = train(row_, recipe(row_, false, whole_run(row_)));
  }

  // The results of two ranks without sharding and faults, by row; an earlier test has trained most of them.
  static std::map<std::string, SimRun>& two_ranks() {
    static std::map<std::string, SimRun> all;
    return all;
  }

  const AlgorithmRow& row_ = GetParam();
  Scratch folder_;
};

TEST_P(AlgorithmTable, TrainsAndActsWhenItShould) {
  const std::vector<double>& losses = whole().trained.losses;
  EXPECT_EQ(texts(whole().acted), texts(expected(row_)));
  EXPECT_TRUE(whole().unwritten);
  ASSERT_EQ(losses.size(), static_cast<size_t>(kSteps));
  EXPECT_LT(mean(losses, 45, 5), 0.9 * mean(losses, 0, 5));
}

TEST_P(AlgorithmTable, ChangesTheWeightsThatEvaluationsUse) {
  const Trained& with = whole().trained;
  EXPECT_TRUE(with.last_evaluation != without().last_evaluation || with.digest != without().digest);
}

// Relative; NaN if a loss is NaN.
double largest_difference(const std::vector<double>& losses, const std::vector<double>& of_whole) {
  const at::Tensor ratios = at::tensor(losses) / at::tensor(of_whole);
  return (ratios.narrow(0, 0, kComparedSteps) - 1).abs().max().item<double>();
}

double relative_distance(const at::Tensor& weights, const at::Tensor& of_whole) {
  return (at::norm(weights - of_whole) / at::norm(of_whole)).item<double>();
}

// `why`: the row's reason for a difference, which has to be there then; "" = none.
void expect_alike(double difference, double rounding, const std::string& why) {
  if (why.empty())
    EXPECT_LT(difference, rounding);
  else
    EXPECT_GT(difference, 10 * rounding) << "no need of a reason: " << why;
}

TEST_P(AlgorithmTable, FourMicrobatchesTrainAsOneOrTheRowSaysWhyNot) {
  const Trained trained = train(row_, recipe(row_, true, "grad_accum = 4\n"));
  const Trained& of_whole = whole().trained;
  const std::string& why = row_.differs.in_microbatches;
  expect_alike(largest_difference(trained.losses, of_whole.losses), row_.rounding, why);
  expect_alike(relative_distance(trained.weights, of_whole.weights), row_.rounding, why);
  EXPECT_LT(mean(trained.losses, 45, 5), 0.9 * mean(trained.losses, 0, 5));
}

// Ends a run by an error after a step.
class Breaking final : public Callback {
 public:
  explicit Breaking(int64_t step) : step_(step) {}
  std::string name() const override { return "Breaking"; }
  void batch_end(State& state, Logger&) override {
    if (state.timestamp.batch == step_) throw OperatingError("broken");
  }

 private:
  int64_t step_;
};

TEST_P(AlgorithmTable, ResumesToTheSameBitsFromAnyPhaseAndIsReplayed) {
  const Setting of_row = recipe(row_, true, whole_run(row_));
  for (const int step : {8, 23, 37}) {
    const auto breaking = [step](Job& job) {
      job.listeners = [step](int) {
        return Engine::Options{.callbacks = {std::make_shared<Breaking>(step)}};
      };
    };
    EXPECT_THROW(train(row_, of_row, breaking, folder_.path(), "auto"), OperatingError);
  }
  const Trained resumed = train(row_, of_row, {}, folder_.path(), "auto", /*is_recorded=*/true);
  EXPECT_EQ(resumed.digest, whole().trained.digest);
  EXPECT_EQ(resumed.losses, whole().trained.losses);
  if (row_.make_model) return;  // which a recorded recipe does not have
  const ReplayResult replayed = replay({.run_dir = folder_.path()});
  EXPECT_TRUE(replayed.same) << replayed.text;
}

constexpr const char* kRunsOutOfMemoryTwice =
    "[[fault]]\nkind = 'out_of_memory'\nrank = 1\nstep = 13\nphase = 'microbatch'\n"
    "[[fault]]\nkind = 'out_of_memory'\nrank = 0\nstep = 34\nphase = 'backward'\n";

Simulation simulation_of(const AlgorithmRow& row, const std::string& sharding = "") {
  constexpr int kRanks = 2;
  SimSeams seams;
  seams.job = [&row](Job& job, int) {
    if (row.make_model) job.make_model = row.make_model;
  };
  return {recipe(row, true, "grad_accum = 'auto'\n[checkpoint]\ninterval = '20ba'\n" + sharding), kRanks,
          make_fault_plan(parse_recipe(kRunsOutOfMemoryTwice, "plan.toml"), kRanks), seams, seams};
}

void expect_no_harm(const Simulation& simulation) {
  const SeedResult result = simulation.run(1);
  EXPECT_THAT(result.findings, testing::IsEmpty());
  for (const auto& [fault, count] : result.faults) EXPECT_EQ(count, 1) << fault;
  EXPECT_EQ(result.faults.size(), 2U);
}

// The faults by night alone: the ranks of the next test have them, too.
TEST_P(AlgorithmTable, TwoRanksTrainAsOneAndRunOutOfMemoryWithoutHarm) {
  const Simulation simulation = simulation_of(row_);
  two_ranks()[name_of(row_)] = simulation.fault_free();
  const std::vector<double> losses = losses_in(simulation.fault_free().logged.at("metrics.jsonl"));
  expect_alike(largest_difference(losses, whole().trained.losses), row_.rounding, row_.differs.on_ranks);
  if (is_nightly()) expect_no_harm(simulation);
}

// Each rank has its rows of every parameter, and gathers the rest.
TEST_P(AlgorithmTable, ShardedRanksHaveTheBitsOfOthersAndRunOutOfMemoryWithoutHarm) {
  const Simulation simulation = simulation_of(row_, "[sharding]\nstrategy = 'full'\n");
  const SimRun& sharded = simulation.fault_free();
  SimRun& others = two_ranks()[name_of(row_)];
  if (others.attempts.empty()) others = simulation_of(row_).fault_free();
  EXPECT_EQ(sharded.weights, others.weights);
  EXPECT_EQ(sharded.logged, others.logged);
  expect_no_harm(simulation);
}

// Four ranks, and all kinds of shares.
TEST_P(AlgorithmTable, EveryStrategyTrainsToTheSameBits) {
  if (!is_nightly() || row_.make_model) return;
  std::set<std::string> digests;
  for (const std::string strategy : {"none", "optimizer", "gradients", "full", "hybrid"}) {
    const std::string sharding =
        "[sharding]\nstrategy = '" + strategy + "'\n" + (strategy == "hybrid" ? "shard_size = 2\n" : "");
    const std::string run = folder_.path(strategy);
    train_in_one_process(recipe(row_, true, sharding), {.ranks = 4, .run_dir = run, .quiet = true});
    digests.insert(inspect_digest(run));
  }
  EXPECT_EQ(digests.size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(All, AlgorithmTable, testing::ValuesIn(algorithm_rows()),
                         [](const auto& info) { return name_of(info.param); });

TEST(AlgorithmTable, HasARowForEveryKind) {
  std::set<std::string> rows;
  for (const AlgorithmRow& row : algorithm_rows()) rows.insert(row.kind);
  for (const std::string& kind : algorithm_catalog().kinds())
    EXPECT_TRUE(kind == kPluginKind || rows.contains(kind)) << kind;
}

}  // namespace
}  // namespace tutti
