// Saving and loading: the save_* and load_* keys of [checkpoint].
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "commands/inspect.h"
#include "commands/local_train.h"
#include "io/checkpoint/run_state.h"
#include "io/hdf5/hdf5_writer.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// 4 batches an epoch.
struct Recipe {
  std::string checkpoint = "";  // lines of [checkpoint]
  std::string max_duration = "1ep";
  int seed = 5;
  std::string model = "hidden = [8]";
  std::string run_name = "one";
  std::string data = "";
  double lr = 0.05;

  std::string text() const {
    std::ostringstream out;
    out << "run_name = '" << run_name << "'\nseed = " << seed << "\n[model]\nkind = 'mlp'\n"
        << model
        << "\n[data.train]\nkind = 'synthetic'\nsamples = 96\nbatch_size = 24\nshuffle = true\nshape = [6]\n"
        << data << "\n[optimizer]\nkind = 'adamw'\nlr = " << lr << "\n[train]\nmax_duration = '"
        << max_duration << "'\n[checkpoint]\n"
        << checkpoint << "\n";
    return out.str();
  }
};

// Counts its steps: a number and a tensor.
class Counting final : public Algorithm {
 public:
  std::string name() const override { return "Counting"; }
  bool match(Event event, const State&) const override { return event == Event::kBatchEnd; }
  void apply(Event, State&, Logger&) override {
    ++steps_;
    sum_ += 1;
  }
  std::string state() const override { return std::to_string(steps_); }
  void restore(const std::string& text) override { steps_ = std::stoi(text); }
  NamedTensors state_tensors() override { return {{"sum", sum_}}; }

 private:
  int steps_ = 0;
  at::Tensor sum_ = at::zeros({1});
};

class StartingFromTest : public testing::Test {
 protected:
  void train(const std::string& run, const Recipe& recipe, const std::string& resume = "") {
    LocalRunOptions options;
    options.ranks = 2;
    options.run_dir = path(run);
    options.resume = resume;
    options.quiet = true;
    options.prepare = [this](Job& job) { job.listeners = listeners_; };
    train_in_one_process(recipe_of(recipe.text()), options);
  }

  std::string refused(const std::string& run, const Recipe& recipe, const std::string& resume = "") {
    return message_of<UserError>([&] { train(run, recipe, resume); });
  }

  std::string path(const std::string& run) const { return folder_.path(run); }
  std::string load_path(const std::string& run) const { return "load_path = '" + path(run) + "'\n"; }

  WholeCheckpoint newest(const std::string& run) const { return newest_checkpoint(path(run)); }
  RunState state(const std::string& run) const { return RunState::from_json(newest(run).state); }
  at::Tensor tensor(const std::string& run, const std::string& name) const {
    const auto tensors = newest(run).tensors;
    const auto found = tensors.find(name);
    return found == tensors.end() ? at::Tensor() : found->second;
  }
  bool alike(const std::string& one, const std::string& other, const std::string& name) const {
    return at::equal(tensor(one, name), tensor(other, name));
  }
  std::vector<std::string> checkpoints(const std::string& run) const {
    return PosixDisk().list(path(run) + "/checkpoints");
  }
  std::string steps(const std::string& run) const {
    std::string steps;
    std::istringstream lines(read_text(path(run) + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);)
      if (line.find("\"loss\"") != std::string::npos)
        steps += line.substr(line.find("\"step\": ") + 8, line.find(',') - line.find("\"step\": ") - 8) + " ";
    return steps;
  }

  Listeners counting_ = [](int) {
    Engine::Options options;
    options.algorithms = {std::make_shared<Counting>()};
    return options;
  };
  Listeners listeners_;
  Scratch folder_;
};

// A step of rate 0 leaves what was loaded as it is.
constexpr const char* kOneStep = "1ba";

TEST_F(StartingFromTest, NamesAreThoseOfThePattern) {
  train("a", {.checkpoint = "save_filename = '{run_name}-ba{batch}-of-{world_size}'\nsave_interval = '2ba'\n"
                            "save_latest_filename = 'newest-{run_name}'"});
  EXPECT_THAT(checkpoints("a"), ElementsAre(".lock", "newest-one", "one-ba2-of-2", "one-ba4-of-2"));
  EXPECT_EQ(std::filesystem::read_symlink(path("a") + "/checkpoints/newest-one"), "one-ba4-of-2");
  train("a",
        {.checkpoint = "save_filename = '{run_name}-ba{batch}-of-{world_size}'\nsave_latest_filename = ''",
         .max_duration = "6ba"},
        "auto");
  EXPECT_EQ(steps("a"), "1 2 3 4 5 6 ");
}

TEST_F(StartingFromTest, AsManyCheckpointsStayAsTheRecipeSays) {
  train("a", {.checkpoint = "save_interval = '1ba'\nsave_num_checkpoints_to_keep = 2"});
  EXPECT_THAT(checkpoints("a"), ElementsAre(".lock", "ep0-ba3", "ep1-ba4", "latest"));
  train("b", {.checkpoint = "save_interval = '1ba'\nsave_num_checkpoints_to_keep = 0"});
  EXPECT_THAT(checkpoints("b"), ElementsAre(".lock", "ep1-ba4", "latest"));
}

TEST_F(StartingFromTest, ARunsFolderStandsForItsCheckpointsWhereverTheyLie) {
  train("a", {.checkpoint = "save_folder = '" + path("elsewhere") + "'\n"});
  train("b", {.checkpoint = load_path("a"), .max_duration = "6ba"});
  EXPECT_EQ(steps("b"), "5 6 ");
}

TEST_F(StartingFromTest, ADamagedFileOfAnyRankSendsAllToTheOneBefore) {
  const std::string twice = "save_interval = '2ba'\n";
  train("a", {.checkpoint = twice});
  const std::string newest = path("a") + "/checkpoints/ep1-ba4";
  for (const char* file : {"rank-0.h5", "rank-1.h5"}) {
    flip_bit(newest + "/" + file, 2000);
    train(file, {.checkpoint = load_path("a") + twice, .max_duration = "6ba"});
    EXPECT_EQ(steps(file), "3 4 5 6 ");
    EXPECT_THAT(refused("b", {.checkpoint = load_path("a/checkpoints/ep1-ba4")}),
                HasSubstr("a/checkpoints/ep1-ba4/" + std::string(file) + ": corrupt"));
    flip_bit(newest + "/" + file, 2000);
  }
  train("b", {.checkpoint = load_path("a") + twice, .max_duration = "6ba"});
  EXPECT_EQ(steps("b"), "5 6 ");
}

TEST_F(StartingFromTest, NamesThatCannotBeAreReportedAtTheStart) {
  EXPECT_THAT(
      refused("a", {.checkpoint = "save_filename = 'ep{epoch}-rank{rank}.pt'"}),
      AllOf(StartsWith("test.toml:19: checkpoint.save_filename = "), HasSubstr("one folder for all ranks")));
  EXPECT_THAT(refused("a", {.checkpoint = "save_filename = 'b{batch_in_epoch}'"}), HasSubstr("add {batch}"));
  EXPECT_THAT(refused("a", {.checkpoint = "save_latest_filename = 'latest-rank{rank}.pt'"}),
              StartsWith("test.toml:19: checkpoint.save_latest_filename = "));
  EXPECT_THAT(
      refused("a", {.checkpoint = "save_filename = 'at-{batch}'\nsave_latest_filename = 'at-1'"}),
      AllOf(HasSubstr("save_latest_filename = \"at-1\""), HasSubstr("save_filename = \"at-{batch}\"")));
}

TEST_F(StartingFromTest, AnotherRunsCheckpointsAreNotOverwrittenUnasked) {
  train("a", {});
  EXPECT_THAT(refused("a", {.run_name = "two"}),
              AllOf(HasSubstr("checkpoint.save_overwrite = false: "), HasSubstr("the run \"one\"")));
  EXPECT_EQ(state("a").run_name, "one");
  train("a", {.checkpoint = "save_overwrite = true", .run_name = "two"});
  EXPECT_EQ(state("a").run_name, "two");
}

TEST_F(StartingFromTest, WeightsAloneAreSavedAndCannotBeResumed) {
  train("a", {.checkpoint = "save_weights_only = true"});
  for (const auto& [name, tensor] : newest("a").tensors) EXPECT_THAT(name, StartsWith("model/"));
  EXPECT_THAT(refused("b", {.checkpoint = load_path("a")}),
              AllOf(HasSubstr("checkpoint.load_path = "), HasSubstr("load_weights_only = true")));
  train("b", {.checkpoint = load_path("a") + "load_weights_only = true", .max_duration = kOneStep, .lr = 0});
  EXPECT_TRUE(alike("a", "b", "model/0.weight"));
  EXPECT_THAT(refused("a", {.checkpoint = "save_weights_only = true"}, "auto"),
              AllOf(HasSubstr("checkpoint.save_weights_only = true"), HasSubstr("--resume = \"auto\"")));
}

TEST_F(StartingFromTest, KeysIgnoredBySavingAreNotInTheCheckpoint) {
  listeners_ = counting_;
  train("a", {.checkpoint = "save_ignore_keys = ['state/optimizers/*/exp_avg', 'algorithms/*']"});
  EXPECT_FALSE(tensor("a", "optimizers/0.weight/exp_avg").defined());
  EXPECT_TRUE(tensor("a", "optimizers/0.weight/exp_avg_sq").defined());
  EXPECT_FALSE(tensor("a", "algorithms/Counting/sum").defined());
  EXPECT_EQ(state("a").listeners.count("algorithms/Counting"), 0u);
  train("a", {.max_duration = "6ba"}, "auto");  // what was left out begins anew
  EXPECT_EQ(steps("a"), "1 2 3 4 5 6 ");
  EXPECT_EQ(state("a").listeners.at("algorithms/Counting"), "2");
}

TEST_F(StartingFromTest, AModelThatWasNotSavedIsMissed) {
  train("a", {.checkpoint = "save_ignore_keys = ['model/0.bias']"});
  EXPECT_THAT(refused("b", {.checkpoint = load_path("a")}), HasSubstr("there is no 'model/0.bias'"));
}

TEST_F(StartingFromTest, WeightsOnlyBeginsAnotherRunFromThem) {
  train("a", {.max_duration = "2ep"});
  train("b", {.checkpoint = load_path("a") + "load_weights_only = true",
              .max_duration = kOneStep,
              .seed = 6,
              .data = "drop_last = true",
              .lr = 0});
  EXPECT_TRUE(alike("a", "b", "model/0.weight"));
  EXPECT_EQ(steps("b"), "1 ");
  EXPECT_EQ(state("b").seed, 6u);
  EXPECT_FALSE(alike("a", "b", "optimizers/0.weight/exp_avg"));
}

TEST_F(StartingFromTest, WeightsOnlyWithInitialWeightsIsAContradiction) {
  train("a", {});
  EXPECT_THAT(refused("b", {.checkpoint = load_path("a") + "load_weights_only = true",
                            .model = "hidden = [8]\nweights = '" + path("a") + "'"}),
              AllOf(HasSubstr("model.weights = "), HasSubstr("load_weights_only = true")));
}

TEST_F(StartingFromTest, NamesThatDifferAreIgnoredWhereThatIsAllowed) {
  train("a", {.model = "hidden = [8]"});
  const Recipe deeper{.checkpoint = load_path("a") + "load_weights_only = true",
                      .max_duration = kOneStep,
                      .model = "hidden = [8, 10]",
                      .lr = 0};
  EXPECT_THAT(refused("b", deeper), HasSubstr("model"));
  Recipe lenient = deeper;
  lenient.checkpoint += "\nload_strict_model_weights = false";
  train("b", lenient);
  EXPECT_TRUE(alike("a", "b", "model/0.weight"));
  lenient.model = "hidden = [9, 10]";
  EXPECT_THAT(refused("c", lenient), AllOf(HasSubstr("'model/0.weight' is [8, 6]"), HasSubstr("[9, 6]")));
}

TEST_F(StartingFromTest, NamesThatDifferAreIgnoredForAWholeRunToo) {
  train("a", {});
  const std::string lenient = load_path("a") + "load_strict_model_weights = false";
  train("b", {.checkpoint = lenient, .max_duration = "6ba", .model = "hidden = [8, 10]"});
  EXPECT_EQ(steps("b"), "5 6 ");
}

TEST_F(StartingFromTest, IgnoredNamesStayAsTheyAre) {
  train("a", {.max_duration = "2ep"});
  train("fresh", {.max_duration = kOneStep, .lr = 0});
  train("b", {.checkpoint = load_path("a") + "load_ignore_keys = ['state/model/0.*', 'state/timestamp']",
              .max_duration = kOneStep,
              .lr = 0});
  EXPECT_TRUE(alike("b", "fresh", "model/0.weight"));
  EXPECT_TRUE(alike("b", "fresh", "model/0.bias"));
  EXPECT_TRUE(alike("b", "a", "model/2.weight"));
  EXPECT_EQ(steps("b"), "1 ");
  EXPECT_GT(tensor("b", "optimizers/0.weight/exp_avg_sq").sum().item<double>(),
            tensor("fresh", "optimizers/0.weight/exp_avg_sq").sum().item<double>());
}

TEST_F(StartingFromTest, TheOptimizersStateMayBeIgnored) {
  train("a", {});
  train(
      "b",
      {.checkpoint = load_path("a") + "load_ignore_keys = ['optimizers/*']", .max_duration = "5ba", .lr = 0});
  train("c", {.checkpoint = load_path("a"), .max_duration = "5ba", .lr = 0});
  EXPECT_EQ(steps("b"), "5 ");
  EXPECT_TRUE(alike("a", "b", "model/0.weight"));
  EXPECT_FALSE(alike("b", "c", "optimizers/0.weight/exp_avg"));
}

TEST_F(StartingFromTest, SeedAndDataMayBeIgnored) {
  train("a", {});
  const Recipe other{
      .checkpoint = load_path("a"), .max_duration = "5ba", .seed = 6, .data = "drop_last = true"};
  EXPECT_THAT(refused("b", other), HasSubstr("seed 5"));
  Recipe allowed = other;
  allowed.checkpoint += "load_ignore_keys = ['rank_zero_seed']";
  EXPECT_THAT(refused("b", allowed), HasSubstr("other data"));
  allowed.checkpoint = load_path("a") + "load_ignore_keys = ['rank_zero_seed', 'dataset_state']";
  train("b", allowed);
  EXPECT_EQ(steps("b"), "5 ");
}

TEST_F(StartingFromTest, AnAlgorithmsStateMayBeLeftOut) {
  listeners_ = counting_;
  train("a", {});
  EXPECT_EQ(state("a").listeners.at("algorithms/Counting"), "4");
  train("b", {.checkpoint = load_path("a"), .max_duration = "5ba"});
  EXPECT_EQ(state("b").listeners.at("algorithms/Counting"), "5");
  EXPECT_EQ(tensor("b", "algorithms/Counting/sum").item<float>(), 5);
  train("c",
        {.checkpoint = load_path("a") + "load_exclude_algorithms = ['Counting']", .max_duration = "5ba"});
  EXPECT_EQ(state("c").listeners.at("algorithms/Counting"), "1");
  EXPECT_EQ(tensor("c", "algorithms/Counting/sum").item<float>(), 1);
}

TEST(Forget, SetsBackWhatIsNamedAndNothingElse) {
  RunState full;
  full.time.batch = 7;
  full.time.total_wct = 2;
  full.rest.at = ResumePoint::Place::kAtBatchEnd;
  full.last_step.loss = 0.5;
  full.last_step.lr = 0.1;
  full.plateau.bad = 3;
  full.lagging_rate = 0.5;
  full.grad_scaler.scale = 1024;
  full.accumulation.count = 4;
  full.metrics = {{"eval/LossMetric", 1}};
  full.listeners = {{"algorithms/EMA", "1"}};
  const auto without = [&full](const std::string& forgotten) {
    RunState state = full;
    forget(state, [&](const std::string& name) { return name == forgotten; });
    return state;
  };
  EXPECT_EQ(without("nothing").to_json(), full.to_json());
  EXPECT_EQ(without("timestamp").time, Timestamp());
  EXPECT_FALSE(without("timestamp").rest.any());
  EXPECT_EQ(without("timestamp").last_step, LastStep());
  EXPECT_EQ(without("timestamp").lagging_rate, 0.5);
  EXPECT_EQ(without("schedulers").plateau, PlateauState());
  EXPECT_EQ(without("schedulers").lagging_rate, 1);
  EXPECT_EQ(without("schedulers").last_step, (LastStep{.loss = 0.5}));
  EXPECT_EQ(without("scaler").grad_scaler, GradScalerState());
  EXPECT_EQ(without("scaler").time.batch, 7);
  EXPECT_EQ(without("accumulation").accumulation, AccumulationState());
  EXPECT_TRUE(without("metrics").metrics.empty());
  EXPECT_TRUE(without("algorithms/EMA").listeners.empty());
}

TEST_F(StartingFromTest, HowToLoadNeedsSomethingToLoad) {
  for (const char* key : {"load_weights_only = true", "load_strict_model_weights = false",
                          "load_ignore_keys = ['model/*']", "load_exclude_algorithms = ['EMA']"}) {
    EXPECT_THAT(refused("a", {.checkpoint = key}),
                AllOf(StartsWith("test.toml:19: checkpoint."), HasSubstr("it needs load_path")))
        << key;
    EXPECT_THAT(refused("a", {.checkpoint = key}, "auto"), HasSubstr("--resume = \"auto\"")) << key;
  }
}

TEST_F(StartingFromTest, AutoresumePrefersItsOwnAndTakesAllOfIt) {
  train("a", {.max_duration = "2ep"});
  const std::string own = "save_folder = '" + path("own") + "'\nautoresume = true\nsave_interval = '1ba'\n" +
                          load_path("a") + "load_weights_only = true\n";
  train("b", {.checkpoint = own, .max_duration = "2ba"});
  EXPECT_EQ(steps("b"), "1 2 ");
  train("b", {.checkpoint = own, .max_duration = "3ba"});
  EXPECT_EQ(steps("b"), "1 2 3 ");
  train("whole", {.checkpoint = load_path("a") + "load_weights_only = true", .max_duration = "3ba"});
  EXPECT_EQ(inspect_digest(path("own")), inspect_digest(path("whole")));
}

TEST_F(StartingFromTest, AutoOnTheCommandLineComesBeforeLoadPath) {
  train("a", {.max_duration = "2ep"});
  const std::string from = load_path("a") + "load_weights_only = true\n";
  train("b", {.checkpoint = from, .max_duration = "2ba"}, "auto");
  EXPECT_EQ(steps("b"), "1 2 ");
  train("b", {.checkpoint = from, .max_duration = "3ba"}, "auto");
  EXPECT_EQ(steps("b"), "1 2 3 ");
}

TEST_F(StartingFromTest, AutoresumeNeedsANameAndAFolder) {
  EXPECT_THAT(refused("a", {.checkpoint = "autoresume = true"}),
              AllOf(StartsWith("test.toml:19: checkpoint.autoresume = true: "), HasSubstr("save_folder")));
  const std::string text = Recipe{.checkpoint = "autoresume = true\nsave_folder = 'x'"}.text();
  const auto why = message_of<UserError>([&] { recipe_of(text.substr(text.find('\n'))); });
  EXPECT_THAT(why, HasSubstr("it needs run_name"));
}

// Looks at the metrics that a resumed run has at hand.
class LooksAtMetrics final : public Callback {
 public:
  explicit LooksAtMetrics(std::map<std::string, double>& seen) : seen_(seen) {}
  std::string name() const override { return "LooksAtMetrics"; }
  void fit_start(State& state, Logger&) override { seen_ = state.metric_values; }

 private:
  std::map<std::string, double>& seen_;
};

TEST_F(StartingFromTest, MetricsAreInEveryCheckpoint) {
  std::map<std::string, double> seen;
  listeners_ = [&seen](int rank) {
    Engine::Options options;
    if (rank == 0) options.callbacks = {std::make_shared<LooksAtMetrics>(seen)};
    return options;
  };
  Recipe recipe{.data = "[data.eval]\nkind = 'synthetic'\nsamples = 24\nshape = [6]"};
  train("a", recipe);
  EXPECT_TRUE(seen.empty());
  recipe.max_duration = "5ba";
  train("a", recipe, "auto");
  ASSERT_EQ(seen.count("eval/MulticlassAccuracy"), 1u);
  const std::string line = read_text(path("a") + "/metrics.jsonl");
  const auto at = line.find("\"metrics/eval/MulticlassAccuracy\": ");
  EXPECT_NEAR(seen.at("eval/MulticlassAccuracy"), std::stod(line.substr(at + 35)), 1e-6);
}

TEST_F(StartingFromTest, KeysNotCarriedOverSayWhy) {
  for (const char* key : {"load_progress_bar = true", "load_object_store = 's3'"})
    EXPECT_THAT(refused("a", {.checkpoint = key}),
                AllOf(StartsWith("test.toml:19: checkpoint."), HasSubstr("not carried over: ")))
        << key;
}

TEST_F(StartingFromTest, MetricsAreAlwaysSaved) {
  train("a", {.checkpoint = "save_metrics = true"});
  EXPECT_FALSE(state("a").metrics.empty());
  EXPECT_THAT(refused("b", {.checkpoint = "save_metrics = false"}),
              AllOf(StartsWith("test.toml:19: checkpoint.save_metrics = false: "),
                    HasSubstr("every checkpoint has them")));
}

// Each rank's file holds the samples that it would have of a shared one: the bits are the same.
class OwnFilesTest : public StartingFromTest {
 protected:
  static constexpr int64_t kRows = 48, kBatch = 12, kRanks = 2;

  OwnFilesTest() {
    const at::Tensor input = at::arange(kRows * 6, at::kFloat).remainder(17).reshape({kRows, 6});
    const at::Tensor target = at::arange(kRows, at::kLong).remainder(3);
    write("all.h5", input, target);
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      const auto rows =
          at::arange(kRows, at::kLong).reshape({-1, kRanks, kBatch / kRanks}).select(1, rank).flatten();
      write("part-" + std::to_string(rank) + ".h5", input.index_select(0, rows),
            target.index_select(0, rows));
    }
  }

  void write(const std::string& name, const at::Tensor& input, const at::Tensor& target) {
    PosixDisk disk;
    write_hdf5(disk, path(name), {hdf5_array("input", input), hdf5_array("target", target)});
  }

  std::string recipe(const std::string& data, const std::string& max_duration = "2ep",
                     const std::string& more = "") const {
    return "seed = 5\n[model]\nkind = 'mlp'\nhidden = [8]\n[data.train]\nkind = 'hdf5'\nbatch_size = 12\n" +
           data + "\n[optimizer]\nkind = 'sgd'\n[train]\nmax_duration = '" + max_duration + "'\n" + more;
  }
  std::string own() const { return "path = '" + path("part-{rank}.h5") + "'\nsampling = 'own'\n"; }

  void train(const std::string& run, const std::string& recipe, const std::string& resume = "") {
    LocalRunOptions options;
    options.run_dir = path(run);
    options.resume = resume;
    options.quiet = true;
    train_in_one_process(recipe_of(recipe), options);
  }
};

TEST_F(OwnFilesTest, ARankTrainsOnAllOfItsFile) {
  train("shared", recipe("path = '" + path("all.h5") + "'"));
  train("own", recipe(own()));
  EXPECT_EQ(inspect_digest(path("own")), inspect_digest(path("shared")));
  EXPECT_EQ(steps("own"), "1 2 3 4 5 6 7 8 ");
}

TEST_F(OwnFilesTest, EvaluationIsOfAllRanksFiles) {
  const std::string shared = "[data.eval]\nkind = 'hdf5'\npath = '" + path("all.h5") + "'\n";
  const std::string of_own = "[data.eval]\nkind = 'hdf5'\n" + own();
  train("shared", recipe(own(), "1ep", shared));
  train("own", recipe(own(), "1ep", of_own));
  const auto evaluated = [this](const std::string& run) {
    const std::string text = read_text(path(run) + "/metrics.jsonl");
    return text.substr(text.find("\"metrics/eval/"));
  };
  EXPECT_EQ(evaluated("own"), evaluated("shared"));
}

TEST_F(OwnFilesTest, AnotherRanksDataIsOtherData) {
  train("own", recipe(own(), "1ep"));
  write("part-1.h5", at::ones({kRows / kRanks, 6}), at::arange(kRows / kRanks, at::kLong).remainder(3));
  const auto why = message_of<UserError>([this] { train("own", recipe(own()), "auto"); });
  EXPECT_THAT(why, HasSubstr("it was trained on other data"));
}

TEST_F(OwnFilesTest, ClassesAreThoseOfAllRanks) {
  write("part-1.h5", at::ones({kRows / kRanks, 6}), at::arange(kRows / kRanks, at::kLong).remainder(7));
  train("own", recipe(own(), "1ep"));
  EXPECT_EQ(tensor("own", "model/2.bias").size(0), 7);
}

TEST_F(OwnFilesTest, UnevenFilesAreAnErrorUnlessTheShortestIsToDo) {
  write("part-1.h5", at::ones({kRows / kRanks - 6, 6}),
        at::arange(kRows / kRanks - 6, at::kLong).remainder(3));
  const auto why = message_of<UserError>([this] { train("own", recipe(own())); });
  EXPECT_THAT(why, AllOf(StartsWith("test.toml:8: data.train.path = "), HasSubstr("24, 18 samples")));
  train("own", recipe(own() + "on_uneven = 'shortest'", "1ep"));
  EXPECT_EQ(steps("own"), "1 2 3 ");
}

}  // namespace
}  // namespace tutti
