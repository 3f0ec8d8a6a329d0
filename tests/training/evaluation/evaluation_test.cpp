#include "training/evaluation/evaluation.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/readers/synthetic_dataset.h"
#include "tensors/memory/out_of_memory.h"
#include "tests/actors/sleeping_world.h"
#include "tests/recipe/section.h"
#include "tests/training/scripted_services.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;

constexpr const char* kRecipe = R"(
[model]
kind = "mlp"
hidden = [4]
[data.train]
kind = "synthetic"
batch_size = 8
[optimizer]
kind = "sgd"
[train]
max_duration = "1ba"
)";

// The state at EVAL_BATCH_END and EVAL_END.
class Witness final : public Callback {
 public:
  std::string name() const override { return "Witness"; }
  void eval_after_forward(State& state, Logger&) override { parts.push_back(state.batch.samples()); }
  void eval_batch_end(State& state, Logger&) override {
    labels.push_back(state.dataloader_label);
    batches.push_back(state.eval_timestamp.batch);
  }
  void eval_end(State& state, Logger&) override {
    labels.push_back(state.dataloader_label);
    at_end = state.eval_timestamp;
    metrics = state.metric_values;
  }

  std::vector<std::string> labels;
  std::vector<int64_t> batches, parts;
  Timestamp at_end;
  std::map<std::string, double> metrics;
};

// An evaluation of batches of the test's own.
struct BatchesOfTest final : EvaluationRun {
  explicit BatchesOfTest(std::function<Batch(int64_t)> batches, double took = 0)
      : batches_(std::move(batches)), took_(took) {}
  std::optional<Batch> fetch(int64_t index) override { return batches_(index); }
  double seconds() override { return took_; }

 private:
  std::function<Batch(int64_t)> batches_;
  double took_;
};

class EvaluationTest : public testing::Test {
 protected:
  EvaluationTest() {
    state_.services = services_;
    build(state_, recipe_of(kRecipe), {{{"input", {3}}, {"target", {}}}, 10}, 3);
    Engine::Options options;
    options.callbacks = {witness_};
    engine_.emplace(state_, logger_, std::move(options));
  }
  static Evaluator two_batches() {
    Evaluator evaluator{"eval", Setting(Setting::Table{}, "data.eval", {})};
    evaluator.batches = 2;
    return evaluator;
  }
  // Two batches of five; the other rank has had as many, and as long.
  LoggedMetrics run() {
    const auto fetch = [](int64_t) {
      const TensorTree::Children five{{"input", at::randn({5, 3})}, {"target", at::randint(10, {5})}};
      return Batch(five);
    };
    services_->of_ranks = [](const at::Tensor& values) { values.mul_(2); };
    BatchesOfTest batches(fetch, 1.5);
    return evaluate(state_, *engine_, two_batches(), batches).value();
  }

  State state_;
  std::shared_ptr<ScriptedServices> services_ = std::make_shared<ScriptedServices>();
  Logger logger_;
  std::shared_ptr<Witness> witness_ = std::make_shared<Witness>();
  std::optional<Engine> engine_;
};

TEST_F(EvaluationTest, ListenersKnowWhoseBatchesTheySee) {
  run();
  EXPECT_THAT(witness_->labels, ElementsAre("eval", "eval", "eval"));
  EXPECT_THAT(witness_->batches, ElementsAre(1, 2));
  EXPECT_EQ(state_.dataloader_label, "train");
}

TEST_F(EvaluationTest, CountsOfAllRanksAreThereAtItsEnd) {
  run();
  EXPECT_EQ(witness_->at_end.batch, 2);
  EXPECT_EQ(witness_->at_end.sample, 20);
  EXPECT_EQ(witness_->at_end.total_wct, 3.0);
}

TEST_F(EvaluationTest, MetricOfSeveralNumbersIsLoggedByTheirNames) {
  Evaluator evaluator = two_batches();
  Setting& section = evaluator.section;
  Setting::Array matrix{
      section_with({{"kind", std::string("ConfusionMatrix")}, {"num_classes", int64_t{10}}})};
  section.table().emplace_back("metrics", Setting(std::move(matrix), "data.eval.metrics", {}));
  section.table().emplace_back("loss", Setting(false, "data.eval.loss", {}));
  BatchesOfTest batches([](int64_t) {
    return Batch(TensorTree::Children{{"input", at::zeros({5, 3})}, {"target", at::ones({5}, at::kLong)}});
  });
  const LoggedMetrics values = evaluate(state_, *engine_, evaluator, batches).value();
  const std::vector<std::string> names = evaluator.metric_names(*state_.model);
  ASSERT_EQ(names.size(), 102U) << "beside the model's own two";
  double of_class_1 = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(values.at(i).first, "metrics/eval/" + names[i]);
    EXPECT_EQ(state_.metric_values.at("eval/" + names[i]), values[i].second);
    if (names[i].starts_with("ConfusionMatrix/1/")) of_class_1 += values[i].second;
  }
  EXPECT_EQ(of_class_1, 10);
}

TEST_F(EvaluationTest, IsAbortedOnAllRanksWhereOneIsAskedToStop) {
  run();
  const auto before = state_.metric_values;
  const auto fetch = [](int64_t) {
    const TensorTree::Children five{{"input", at::zeros({5, 3})}, {"target", at::zeros({5}, at::kLong)}};
    return Batch(five);
  };
  BatchesOfTest other_stops(fetch);
  services_->of_ranks = [](const at::Tensor& values) { values.select(0, 3).fill_(1.0); };
  EXPECT_FALSE(evaluate(state_, *engine_, two_batches(), other_stops));
  EXPECT_EQ(state_.metric_values, before);
  EXPECT_EQ(state_.dataloader_label, "train");
}

TEST_F(EvaluationTest, EvaluationsAreCountedAnew) {
  run();
  run();
  EXPECT_EQ(witness_->at_end.batch, 2);
  EXPECT_EQ(witness_->at_end.sample, 20);
}

TEST_F(EvaluationTest, MetricsAreThereAtItsEnd) {
  const LoggedMetrics values = run();
  ASSERT_EQ(values.size(), 3u);
  EXPECT_THAT(witness_->metrics, ElementsAre(Pair("eval/CrossEntropy", values[1].second),
                                             Pair("eval/MulticlassAccuracy", values[0].second),
                                             Pair("eval/loss", values[2].second)));
}

class TwoHeads final : public Model {
 public:
  TensorTree forward(const Batch& batch) override {
    return TensorTree::Children{{"age", batch["input"]}, {"kind", batch["input"]}};
  }
  at::Tensor loss(const Outputs&, const Batch&) override { return at::zeros({}); }
  const char* kind() const override { return "TwoHeads"; }
};

TEST_F(EvaluationTest, AMetricOfSeveralOutputsIsRefusedWithTheirNames) {
  state_.model = std::make_shared<TwoHeads>();
  const Setting recipe = recipe_of(
      std::string(kRecipe) + "[data.eval]\nkind = 'synthetic'\nmetric_names = ['MulticlassAccuracy']\n");
  const auto evaluator = Evaluator::read(recipe.at("data").at("eval"), TrainSettings::read(recipe));
  const TensorDataset data(
      TensorTree::Children{{"input", at::zeros({1, 3})}, {"target", at::zeros({1}, at::kLong)}}, 10);
  EXPECT_THAT(message_of<UserError>([&] { try_metrics(state_, evaluator, data); }),
              AllOf(StartsWith("test.toml:12: [data.eval]: MulticlassAccuracy cannot measure the outputs"),
                    HasSubstr("there are several: age, kind")));
}

// Trains on scores, and evaluates with the class of the highest, which its loss does not take.
class Decoding final : public Model {
 public:
  explicit Decoding(bool fails = false) : fails_(fails) {}
  TensorTree forward(const Batch& batch) override { return batch["input"]; }
  Outputs eval_forward(const Batch& batch, std::optional<Outputs>) override {
    if (fails_) throw std::runtime_error("no such beam");
    return batch["input"].argmax(1);
  }
  at::Tensor loss(const Outputs& outputs, const Batch& batch) override {
    return at::cross_entropy_loss(outputs.tensor(), batch["target"]);
  }
  std::vector<std::string> get_metrics(bool) const override { return {}; }
  const char* kind() const override { return "Decoding"; }

 private:
  bool fails_;
};

TEST_F(EvaluationTest, MetricsOfTablesAreBesideTheModelsOwnAndInPlaceOfThoseOfTheirNames) {
  const auto named = [&](const std::string& keys) {
    const Setting recipe = recipe_of(std::string(kRecipe) + "[data.eval]\nkind = 'synthetic'\n" + keys);
    return Evaluator::read(recipe.at("data").at("eval"), TrainSettings::read(recipe))
        .metric_names(*state_.model);
  };
  const std::string recall = "[[data.eval.metrics]]\nkind = 'MulticlassRecall'\nnum_classes = 3\n";
  EXPECT_THAT(named(recall), ElementsAre("MulticlassAccuracy", "CrossEntropy", "MulticlassRecall", "loss"));
  EXPECT_THAT(named("metric_names = ['Entropy']\n" + recall),
              ElementsAre("CrossEntropy", "MulticlassRecall", "loss"));
  EXPECT_THAT(named("[[data.eval.metrics]]\nkind = 'CrossEntropy'\nbatch_means = true\n"),
              ElementsAre("MulticlassAccuracy", "CrossEntropy", "loss"));
}

TEST_F(EvaluationTest, ALossThatCannotBeMeasuredIsRefusedUnlessItIsLeftOut) {
  const Batch sample = TensorTree::Children{{"input", at::eye(3)}, {"target", at::arange(3)}};
  const TensorDataset data(TensorTree::Children(sample.children()), 3);
  const auto read = [](const std::string& keys) {
    const Setting recipe = recipe_of(std::string(kRecipe) + "[data.eval]\nkind = 'synthetic'\n" + keys);
    Evaluator evaluator = Evaluator::read(recipe.at("data").at("eval"), TrainSettings::read(recipe));
    evaluator.batches = 1;
    return evaluator;
  };
  const auto refusal = [&](const std::string& keys) {
    return message_of<UserError>([&] { try_metrics(state_, read(keys), data); });
  };
  state_.model = std::make_shared<Decoding>();
  for (const char* measured : {"", "metric_names = ['loss']\n"})
    EXPECT_THAT(refusal(measured),
                AllOf(StartsWith("test.toml:12: [data.eval]: loss cannot measure this model on this data: "),
                      HasSubstr("; with loss = false the loss is not measured")));
  const auto logged = [&](const std::string& keys) {
    try_metrics(state_, read(keys), data);
    BatchesOfTest batches([&](int64_t) { return sample; });
    return evaluate(state_, *engine_, read(keys), batches).value();
  };
  EXPECT_THAT(logged("loss = false\n"), IsEmpty());
  EXPECT_THAT(logged("loss = false\n[[data.eval.metrics]]\nkind = 'MeanSquaredError'\n"),
              ElementsAre(Pair("metrics/eval/MeanSquaredError", 0.0)));
  state_.model = std::make_shared<Decoding>(/*fails=*/true);
  EXPECT_THAT(
      refusal(""),
      StartsWith("test.toml:12: [data.eval]: the model cannot evaluate the first sample: in eval_forward of "
                 "Decoding: no such beam"));
}

// In Composer's way the mean of a batch weighs as one, however the memory had it cut.
TEST_F(EvaluationTest, ABatchThatIsCutForLackOfMemoryCountsOnce) {
  state_.composer = true;
  const at::Tensor inputs = at::randn({8, 3}), targets = at::randint(10, {8});
  const auto fetch = [&](int64_t index) {
    const int64_t begin = index == 0 ? 0 : 5, size = index == 0 ? 5 : 3;
    const TensorTree::Children part{{"input", inputs.narrow(0, begin, size)},
                                    {"target", targets.narrow(0, begin, size)}};
    return Batch(part);
  };
  const auto run = [&](int64_t most) {
    services_->trial = [&, most](const std::function<void()>& work) -> std::optional<std::string> {
      work();
      return state_.batch.samples() > most ? std::optional<std::string>("too many at once") : std::nullopt;
    };
    BatchesOfTest batches(fetch);
    return evaluate(state_, *engine_, two_batches(), batches).value();
  };
  const auto whole = run(5), cut = run(2);
  ASSERT_EQ(whole.size(), 3U);
  for (std::size_t m = 0; m < whole.size(); ++m) EXPECT_NEAR(whole[m].second, cut[m].second, 1e-6) << m;
}

// Another rank has no memory for more than three samples, or for none.
TEST_F(EvaluationTest, RanksThatEvaluateTogetherHalveTheirPartsTogether) {
  services_->together = true;
  int64_t fits = 3;
  services_->of_ranks = [&](const at::Tensor& values) {
    const bool flags = values.numel() == 2;
    if (flags && witness_->parts.back() > fits) values[1].add_(1);
    if (!flags && fits == 0) values[4].add_(1);
  };
  Evaluator evaluator = two_batches();
  evaluator.global_batch = 5;
  BatchesOfTest batches([](int64_t) -> Batch {
    return TensorTree::Children{{"input", at::ones({5, 3})}, {"target", at::zeros({5}, at::kLong)}};
  });
  const auto cut = evaluate(state_, *engine_, evaluator, batches).value();
  EXPECT_THAT(witness_->parts, ElementsAre(5, 3, 2, 3, 2));
  EXPECT_EQ(witness_->at_end.sample, 10);
  EXPECT_EQ(witness_->at_end.batch, 2);
  fits = 5;
  const auto whole = evaluate(state_, *engine_, evaluator, batches).value();
  for (std::size_t m = 0; m < whole.size(); ++m) EXPECT_NEAR(whole[m].second, cut[m].second, 1e-6) << m;
  fits = 0;
  witness_->parts.clear();
  EXPECT_THAT([&] { evaluate(state_, *engine_, evaluator, batches); },
              testing::ThrowsMessage<AgreedOutOfMemory>(HasSubstr("on 1 of 1 ranks with one sample")));
  EXPECT_THAT(witness_->parts, ElementsAre(5, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1));
}

}  // namespace
}  // namespace tutti
