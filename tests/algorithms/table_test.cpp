// What holds for every algorithm: one row of rows.cpp each.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "algorithms/catalog.h"
#include "algorithms/factory.h"
#include "commands/inspect.h"
#include "commands/local_train.h"
#include "io/formats/json_line.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "sim/simulate/simulation.h"
#include "tests/algorithms/rows.h"
#include "tests/runtime/nightly.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

std::string recipe_text(const AlgorithmRow& row, bool with_algorithm, const std::string& more) {
  std::string text = "seed = 5\n" + row.training + "[train]\nmax_duration = '" + std::to_string(kSteps) +
                     "ba'\n" + row.train + more;
  if (with_algorithm) text += "[[algorithms]]\nkind = '" + row.kind + "'\n" + row.options;
  return text;
}

Setting recipe(const AlgorithmRow& row, bool with_algorithm, const std::string& more = "") {
  return resolve_recipe(parse_recipe(recipe_text(row, with_algorithm, more), "table.toml"));
}

std::string evaluated(const AlgorithmRow& row) {
  std::string section = row.training.substr(row.training.find("[data.train]"));
  section = section.substr(0, section.find("[optimizer]"));
  for (size_t at; (at = section.find("data.train")) != std::string::npos;)
    section.replace(at, 10, "data.eval");
  const std::string all = "subset_num_batches = 25";
  section.replace(section.find(all), all.size(), "subset_num_batches = 1");
  return "eval_interval = '25ba'\n" + section;
}

struct Trained {
  std::vector<double> losses;
  std::string digest;
};

Trained train(const Setting& recipe, const std::string& run_dir,
              const std::function<void(Job&)>& prepare = {}, const std::string& resume = "") {
  LocalRunOptions options;
  options.ranks = 1;
  options.quiet = true;
  options.run_dir = run_dir;
  options.resume = resume;
  options.prepare = prepare;
  train_in_one_process(recipe, options);
  Trained trained{{}, inspect_digest(run_dir)};
  std::istringstream lines(read_text(run_dir + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);)
    if (line.find("\"loss\"") != std::string::npos) trained.losses.push_back(json_number(line, "loss"));
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

// Compares each batch with what it was before its step.
class UnwrittenBatches {
 public:
  void operator()(const Batch& batch) {
    expect_unwritten();
    leaves_ = batch.leaves();
    copies_.clear();
    for (const auto& [name, leaf] : leaves_) copies_.push_back(leaf.clone());
  }
  void expect_unwritten() const {
    for (size_t i = 0; i < leaves_.size(); ++i) EXPECT_TRUE(at::equal(leaves_[i].second, copies_[i]));
  }

 private:
  std::vector<std::pair<std::string, at::Tensor>> leaves_;
  std::vector<at::Tensor> copies_;
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

class AlgorithmTable : public testing::TestWithParam<AlgorithmRow> {
 protected:
  const AlgorithmRow& row_ = GetParam();
  Scratch folder_;
};

TEST_P(AlgorithmTable, TrainsAndActsWhenItShould) {
  Acted acted;
  UnwrittenBatches batches;
  const Setting with = recipe(row_, true, evaluated(row_)), without = recipe(row_, false, evaluated(row_));
  const auto prepare = [&](Job& job) {
    job.before_step = [&](int, int64_t, const Trainee&, const Batch& batch) { batches(batch); };
    job.listeners = [&](int) {
      Engine::Options options;
      options.algorithms = {
          std::make_shared<Recorded>(make_algorithm(with.at("algorithms").array()[0]), acted)};
      return options;
    };
  };
  const Trained trained = train(without, folder_.path("recorded"), prepare);
  batches.expect_unwritten();
  EXPECT_EQ(texts(acted), texts(expected(row_)));
  ASSERT_EQ(trained.losses.size(), static_cast<size_t>(kSteps));
  EXPECT_LT(mean(trained.losses, 45, 5), 0.9 * mean(trained.losses, 0, 5));
}

TEST_P(AlgorithmTable, ChangesTheWeightsThatEvaluationsUse) {
  const Trained with = train(recipe(row_, true, evaluated(row_)), folder_.path("with"));
  const Trained without = train(recipe(row_, false, evaluated(row_)), folder_.path("without"));
  const auto last_line = [&](const char* run) {
    const std::string text = read_text(folder_.path(run) + "/metrics.jsonl");
    return text.substr(text.rfind("\"metrics/eval"));
  };
  EXPECT_TRUE(last_line("with") != last_line("without") || with.digest != without.digest);
}

TEST_P(AlgorithmTable, TrainsInFourMicrobatches) {
  const Trained trained = train(recipe(row_, true, "grad_accum = 4\n"), folder_.path("run"));
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

TEST_P(AlgorithmTable, ResumesToTheSameBitsFromAnyPhase) {
  const Setting of_row = recipe(row_, true, "[checkpoint]\ninterval = '5ba'\n");
  const std::string run = folder_.path("broken");
  for (const int step : {8, 23, 37}) {
    const auto breaking = [step](Job& job) {
      job.listeners = [step](int) {
        return Engine::Options{.callbacks = {std::make_shared<Breaking>(step)}};
      };
    };
    EXPECT_THROW(train(of_row, run, breaking, "auto"), OperatingError);
  }
  const Trained resumed = train(of_row, run, {}, "auto");
  const Trained whole = train(of_row, folder_.path("whole"));
  EXPECT_EQ(resumed.digest, whole.digest);
  EXPECT_EQ(resumed.losses, whole.losses);
}

TEST_P(AlgorithmTable, TwoRanksRunOutOfMemoryAndKeepEveryInvariant) {
  constexpr int kRanks = 2;
  const Setting of_row = recipe(row_, true, "grad_accum = 'auto'\n[checkpoint]\ninterval = '20ba'\n");
  const FaultPlan plan =
      make_fault_plan(parse_recipe("[[fault]]\nkind = 'out_of_memory'\n", "plan.toml"), kRanks);
  const Simulation simulation(of_row, kRanks, plan);
  int64_t fired = 0;
  const uint64_t last = is_nightly() ? 4 : 2;
  for (uint64_t seed = 1; seed <= last; ++seed) {
    const SeedResult result = simulation.run(seed);
    EXPECT_THAT(result.findings, testing::IsEmpty()) << "seed " << seed;
    fired += result.faults.contains("out_of_memory") ? result.faults.at("out_of_memory") : 0;
  }
  EXPECT_GT(fired, 0);
}

INSTANTIATE_TEST_SUITE_P(All, AlgorithmTable, testing::ValuesIn(algorithm_rows()),
                         [](const auto& info) { return info.param.kind; });

TEST(AlgorithmTable, HasARowForEveryKind) {
  std::set<std::string> rows;
  for (const AlgorithmRow& row : algorithm_rows()) rows.insert(row.kind);
  for (const std::string& kind : algorithm_catalog().kinds())
    EXPECT_TRUE(kind == kPluginKind || rows.contains(kind)) << kind;
}

}  // namespace
}  // namespace tutti
