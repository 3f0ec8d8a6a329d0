#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "commands/local_train.h"
#include "data/dataset.h"
#include "io/journal/journal_steps.h"
#include "io/journal/recorded_run.h"
#include "tests/actors/listened_run.h"
#include "tests/actors/sleeping_world.h"
#include "training/evaluation/evaluator.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;

// 4 batches an epoch, of 2 epochs.
constexpr const char* kTraining = R"(
seed = 5
[model]
kind = "mlp"
hidden = [8]
[data.train]
kind = "synthetic"
samples = 96
batch_size = 24
shape = [6]
[optimizer]
kind = "sgd"
[train]
max_duration = "2ep"
)";

std::string evaluator(const std::string& heading, const std::string& keys, int samples = 90) {
  return heading + "\nkind = 'synthetic'\nsamples = " + std::to_string(samples) +
         "\nbatch_size = 24\nshape = [6]\n" + keys + "\n";
}
std::string other(const std::string& keys, int samples = 90) {
  return evaluator("[[evaluators]]", keys, samples);
}
std::string eval(const std::string& keys) { return evaluator("[data.eval]", keys); }

// By metric: the values by step.
using Measured = std::map<std::string, std::map<int, double>>;

Measured measured(const std::string& evaluators, int ranks = 1) {
  const Scratch folder;
  LocalRunOptions options;
  options.ranks = ranks;
  options.quiet = true;
  options.run_dir = folder.path("run");
  train_in_one_process(recipe_of(kTraining + evaluators), options);
  Measured found;
  std::istringstream lines(read_text(options.run_dir + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto fields = nlohmann::json::parse(line);
    for (const auto& [name, value] : fields.items())
      if (name.starts_with("metrics/") && !name.starts_with("metrics/train/"))
        found[name][fields["step"].get<int>()] = value.get<double>();
  }
  return found;
}

std::vector<int> steps(const Measured& of, const std::string& metric) {
  std::vector<int> found;
  if (of.contains(metric))
    for (const auto& [step, value] : of.at(metric)) found.push_back(step);
  return found;
}

std::string refusal(const std::string& evaluators) {
  try {
    measured(evaluators);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(EvaluatorsTest, EvaluatorsHaveTheirOwnLabelsAndIntervals) {
  const auto of = measured(eval("") + other("label = 'often'\neval_interval = '3ba'") +
                           other("label = 'never'\neval_interval = '0ep'"));
  EXPECT_THAT(steps(of, "metrics/eval/CrossEntropy"), ElementsAre(4, 8));
  EXPECT_THAT(steps(of, "metrics/often/CrossEntropy"), ElementsAre(3, 6, 8));  // the last: the training's end
  EXPECT_THAT(steps(of, "metrics/never/CrossEntropy"), IsEmpty());
  EXPECT_EQ(of.at("metrics/eval/CrossEntropy").at(8), of.at("metrics/often/CrossEntropy").at(8));
}

TEST(EvaluatorsTest, AnExtraEvaluatorNeedsNoDataEval) {
  EXPECT_THAT(measured(other("label = 'alone'")),
              ElementsAre(Key("metrics/alone/CrossEntropy"), Key("metrics/alone/MulticlassAccuracy"),
                          Key("metrics/alone/loss")));
}

TEST(EvaluatorsTest, ASubsetIsTheFirstBatches) {
  const auto of = measured(other("label = 'subset'\nsubset_num_batches = 2") + other("label = 'two'", 48));
  EXPECT_EQ(of.at("metrics/subset/CrossEntropy"), of.at("metrics/two/CrossEntropy"));
  EXPECT_NE(of.at("metrics/subset/CrossEntropy"), measured(eval("")).at("metrics/eval/CrossEntropy"));
}

TEST(EvaluatorsTest, MicrobatchesChangeNothing) {
  const auto whole = measured(eval("")), parts = measured(eval("device_eval_microbatch_size = 5"));
  EXPECT_EQ(measured(eval("device_eval_microbatch_size = 'auto'")), whole);
  EXPECT_EQ(parts.at("metrics/eval/MulticlassAccuracy"), whole.at("metrics/eval/MulticlassAccuracy"));
  for (const auto& [step, value] : whole.at("metrics/eval/CrossEntropy"))
    EXPECT_NEAR(parts.at("metrics/eval/CrossEntropy").at(step), value, 1e-6);
}

// The loss of an mlp is the mean cross entropy.
TEST(EvaluatorsTest, TheLossIsMeasuredForAllThatWatchAMetric) {
  const std::pair<std::string, std::string> names[] = {{"loss", "often/loss"},
                                                       {"metrics/eval/loss", "metrics/often/loss"}};
  for (const auto& [of_eval, of_other] : names) {
    const std::string watching =
        "[[callbacks]]\nkind = 'threshold_stopper'\nmonitor = '" + of_eval +
        "'\ndataloader_label = 'eval'\nthreshold = 100\n[checkpoint]\nbest = { metric = '" + of_other +
        "', keep = 1 }\n[scheduler]\nkind = 'reduce_lr_on_plateau'\nmonitor = '" + of_other + "'\n";
    const auto of = measured(eval("") + other("label = 'often'\neval_interval = '2ba'") + watching);
    EXPECT_EQ(steps(of, "metrics/eval/loss"), (std::vector{4})) << "less is better than 100";
    EXPECT_THAT(steps(of, "metrics/often/loss"), ElementsAre(2, 4));
  }
  for (const int ranks : {1, 3})
    for (const char* size : {"", "device_eval_microbatch_size = 5"}) {
      const auto one = measured(eval(size), ranks);
      for (const auto& [step, value] : one.at("metrics/eval/CrossEntropy"))
        EXPECT_NEAR(one.at("metrics/eval/loss").at(step), value, 1e-6) << ranks << size;
    }
}

TEST(EvaluatorsTest, ALoggedNameMayLeaveOutItsFirstPartsIfThatIsClear) {
  const auto logged = [](const std::string& metric, const std::vector<std::string>& measured) {
    return logged_name(Setting(metric, "monitor", {}), measured);
  };
  const auto refusal = [&](const std::string& metric, const std::vector<std::string>& measured) {
    return message_of<UserError>([&] { logged(metric, measured); });
  };
  EXPECT_EQ(logged("a", {"metrics/eval/a", "metrics/eval/ba"}), "metrics/eval/a");
  EXPECT_EQ(logged("far/a", {"metrics/eval/a", "metrics/far/a"}), "metrics/far/a");
  EXPECT_EQ(logged("metrics/far/a", {"metrics/eval/a", "metrics/far/a"}), "metrics/far/a");
  EXPECT_THAT(refusal("a", {"metrics/eval/a", "metrics/far/a"}), HasSubstr("this fits"));
  EXPECT_THAT(refusal("b", {"metrics/eval/a"}), HasSubstr("expected one of metrics/eval/a"));
  EXPECT_THAT(refusal("b", {}), HasSubstr("never measured"));
}

TEST(EvaluatorsTest, AMetricThatIsNamedLossStandsInPlaceOfIt) {
  const auto of = measured(eval("[[data.eval.metrics]]\nkind = 'MulticlassAccuracy'\nname = 'loss'\n"));
  EXPECT_EQ(of.at("metrics/eval/loss"), measured(eval("")).at("metrics/eval/MulticlassAccuracy"));
}

TEST(EvaluatorsTest, EverySampleOfAnUnevenLastBatchCountsOnce) {
  const auto alone = measured(eval("")), three = measured(eval(""), 3);
  EXPECT_EQ(three.at("metrics/eval/MulticlassAccuracy"), alone.at("metrics/eval/MulticlassAccuracy"));
}

TEST(EvaluatorsTest, MetricsAreChosenByName) {
  EXPECT_THAT(measured(eval("metric_names = ['MulticlassAccuracy']")),
              ElementsAre(Key("metrics/eval/MulticlassAccuracy"), Key("metrics/eval/loss")));
  EXPECT_THAT(measured(eval("metric_names = ['loss']")), ElementsAre(Key("metrics/eval/loss")));
}

TEST(EvaluatorsTest, NamesAreFoundInThoseOfTheModelsMetrics) {
  const auto loss = Key("metrics/eval/loss");
  const auto accuracy = ElementsAre(Key("metrics/eval/MulticlassAccuracy"), loss);
  const auto both =
      ElementsAre(Key("metrics/eval/CrossEntropy"), Key("metrics/eval/MulticlassAccuracy"), loss);
  EXPECT_THAT(measured(eval("metric_names = ['accuracy']")), accuracy);
  EXPECT_THAT(measured(eval("metric_names = ['class.*y']")), accuracy);
  EXPECT_THAT(measured(eval("metric_names = ['ENTROPY', 'CrossEntropy', 'acc']")), both);
}

TEST(EvaluatorsTest, TwoOfAKindAreDistinguishedByTheirNames) {
  const std::string two =
      "[[evaluators.metrics]]\nkind = 'MulticlassAccuracy'\n"
      "[[evaluators.metrics]]\nkind = 'MulticlassAccuracy'\ntop_k = 10\nname = 'Top10'\n";
  const std::string stopper =
      "[[callbacks]]\nkind = 'threshold_stopper'\nmonitor = 'Top10'\ndataloader_label = 'two'\n"
      "threshold = 0.5\n";
  const auto of = measured(other("label = 'two'\n" + two) + stopper);
  EXPECT_EQ(steps(of, "metrics/two/Top10").front(), 4);
  EXPECT_EQ(steps(of, "metrics/two/Top10").back(), 4) << "the callback finds it by its name";
  EXPECT_EQ(of.at("metrics/two/Top10").at(4), 1.0);
  EXPECT_LT(of.at("metrics/two/MulticlassAccuracy").at(4), 1.0);
}

TEST(EvaluatorsTest, MetricsHaveKeysOfTheirOwn) {
  const auto best = measured(eval("")).at("metrics/eval/MulticlassAccuracy");
  const auto among_three = measured(eval("[[data.eval.metrics]]\nkind = 'MulticlassAccuracy'\ntop_k = 3\n"));
  const auto among_ten =
      measured(other("label = 'ten'\n[[evaluators.metrics]]\nkind = 'MulticlassAccuracy'\ntop_k = 10\n"));
  EXPECT_EQ(among_three.size(), 3u) << "the model's other metric stays";
  EXPECT_GT(among_three.at("metrics/eval/MulticlassAccuracy").at(8), best.at(8));
  EXPECT_EQ(among_ten.at("metrics/ten/MulticlassAccuracy").at(8), 1.0);
}

TEST(EvaluatorsTest, ContradictoryEvaluatorsAreRefusedByTheirKey) {
  EXPECT_THAT(refusal(other("label = 'a'") + other("label = 'a'")),
              HasSubstr("evaluators.1.label = \"a\": another evaluator has this label"));
  EXPECT_THAT(refusal(eval("") + other("label = 'eval'")), HasSubstr("evaluators.0.label"));
  EXPECT_THAT(refusal(other("label = 'train'")), HasSubstr("other than \"train\""));
  EXPECT_THAT(refusal(other("")), HasSubstr("label"));
  EXPECT_THAT(refusal(eval("metric_names = ['MulticlasAccuracy']")),
              HasSubstr("did you mean MulticlassAccuracy"));
  EXPECT_THAT(refusal(eval("metric_names = ['Dice(']")), HasSubstr("metric_names"));
  EXPECT_THAT(refusal(eval("metric_names = ['Dice(']")), HasSubstr("no regular expression"));
  const std::string named = "[[data.eval.metrics]]\nkind = 'CrossEntropy'\nname = 'same'\n";
  EXPECT_THAT(refusal(eval(named + named)), HasSubstr("same is in it twice"));
  EXPECT_THAT(refusal(eval("subset_num_batches = 0")), HasSubstr("data.eval.subset_num_batches = 0"));
}

TEST(EvaluatorsTest, EveryBatchAndWhatCameOfThemAreInTheJournal) {
  const Scratch folder;
  LocalRunOptions options;
  options.quiet = options.live = true;
  options.run_dir = folder.path("run");
  train_in_one_process(recipe_of(kTraining + eval("") + other("label = 'late'\neval_interval = '8ba'")),
                       options);
  for (int rank = 0; rank < 2; ++rank) {
    JournalSteps journal(recorded_run(options.run_dir).path(rank));
    std::map<int64_t, std::vector<std::string>> found;
    while (const auto step = journal.next())
      for (const auto& [key, hash] : step->hashes)
        if (key.find(" of ") != key.npos) found[step->number].push_back(key);
    EXPECT_THAT(found[4], ElementsAre("compute/batch of eval #1", "compute/batch of eval #2",
                                      "compute/batch of eval #3", "compute/batch of eval #4",
                                      "compute/metrics of eval #1"));
    EXPECT_EQ(found[8].size(), 10u);
    EXPECT_EQ(found.size(), 2u);
  }
}

TEST(EvaluatorsTest, EpochsMayBeSubsetsToo) {
  const std::string all = kTraining;
  const Scratch folder;
  LocalRunOptions options;
  options.ranks = 2;
  options.quiet = true;
  options.run_dir = folder.path("run");
  std::string recipe = all;
  recipe.insert(recipe.find("shape"), "train_subset_num_batches = 3\n");
  train_in_one_process(recipe_of(recipe), options);
  const std::string lines = read_text(options.run_dir + "/metrics.jsonl");
  EXPECT_EQ(std::ranges::count(lines, '\n'), 6);
}

// The number of samples of State::dataset.
class SizesSeen final : public Callback {
 public:
  std::string name() const override { return "SizesSeen"; }
  void run_event(Event event, State& state, Logger&) override {
    if (event == Event::kBatchStart || event == Event::kEvalStart)
      by_label[state.dataloader_label].insert(state.dataset->size());
  }

  std::map<std::string, std::set<int64_t>> by_label;
};

TEST(EvaluatorsTest, TheStateHasTheDataThatBatchesComeFrom) {
  const Scratch folder;
  const auto seen = std::make_shared<SizesSeen>();
  run_listened(kTraining + eval("") + other("label = 'small'", 30), folder.path("run"), seen,
               /*fails=*/false);
  EXPECT_THAT(seen->by_label,
              ElementsAre(testing::Pair("eval", ElementsAre(90)), testing::Pair("small", ElementsAre(30)),
                          testing::Pair("train", ElementsAre(96))));
}

}  // namespace
}  // namespace tutti
