#include "models/exported/output_losses.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/exported/exported_model.h"
#include "models/losses.h"
#include "models/zoo/catalog.h"
#include "models/zoo/factory.h"
#include "recipe/plugin_maker.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

// Of a program with the outputs 'logits' and 'features'. The keys begin in line 4.
std::shared_ptr<Model> with_losses(const std::string& keys, const SampleSpec& samples,
                                   const std::string& kind = "exported",
                                   const std::string& file = "exported/convnet.pt2") {
  const std::string path = TUTTI_SOURCE_DIR "/tests/golden/" + file;
  const std::string recipe = "[model]\nkind = '" + kind + "'\npath = '" + path + "'\n" + keys;
  const Setting written = parse_recipe(recipe, "r.toml");
  return make_model(resolve_section(model_catalog(), written.at("model"), {}), samples);
}

constexpr int64_t kRows = 8;

const SampleSpec kNamedTargets{
    {{"input", {3, 6, 6}}, {"target", {}}, {"features", {6}}, {"bytes", {}}},
    5,
    {{"input", at::kFloat}, {"target", at::kLong}, {"features", at::kFloat}, {"bytes", at::kByte}}};

constexpr const char* kTwoLosses = R"(
[[model.losses]]
output = 'logits'
[[model.losses]]
output = 'features'
loss = 'mse'
weight = 0.5
)";

class OutputLosses : public testing::Test {
 protected:
  OutputLosses() {
    at::manual_seed(3);
    outputs.set("logits", at::randn({kRows, 5}));
    outputs.set("features", at::randn({kRows, 6}));
    batch.set("input", at::randn({kRows, 3, 6, 6}));
    batch.set("target", at::tensor({1, -100, 4, 0, -100, -100, 2, 3}, at::kLong));
    batch.set("features", at::randn({kRows, 6}));
    batch.set("bytes", at::tensor({1, 0, 4, 0, 1, 2, 2, 3}, at::kByte));
  }
  double loss_of(const std::string& keys) const {
    return with_losses(keys, kNamedTargets)->loss(outputs, batch).item<double>();
  }
  at::Tensor cross_entropies() const {
    return soft_cross_entropy(outputs["logits"], batch["target"], {.reduction = LossReduction::kNone});
  }
  double squares() const { return (outputs["features"] - batch["features"]).square().mean().item<double>(); }

  Outputs outputs;
  Batch batch;
};

std::string refused_losses(const std::string& keys, const SampleSpec& samples = kNamedTargets) {
  return message_of<UserError>([&] { with_losses(keys, samples); });
}

TEST_F(OutputLosses, AddUpByTheirWeightsOverAllSamples) {
  const double classes = cross_entropies().sum().item<double>() / kRows;
  EXPECT_NEAR(loss_of(kTwoLosses), classes + 0.5 * squares(), 1e-6);
}

TEST_F(OutputLosses, AreThoseOfScriptsToo) {
  const auto model = with_losses(kTwoLosses, kNamedTargets, "torchscript", "scripts/traced.pt");
  const double classes = cross_entropies().sum().item<double>() / kRows;
  EXPECT_NEAR(model->loss(outputs, batch).item<double>(), classes + 0.5 * squares(), 1e-6);
  materialise(*model, 1);
  const Outputs found = model->forward(batch);
  EXPECT_EQ(found["logits"].size(1), 5);
  EXPECT_EQ(found["features"].size(1), 6);
}

// Each part has other numbers of targets that count.
TEST_F(OutputLosses, OfMicrobatchesAddUpToTheWhole) {
  const auto model = with_losses(kTwoLosses, kNamedTargets);
  double sum = 0.0, weight = 0.0;
  for (const auto& [first, count] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {3, 1}, {4, 2}, {6, 2}}) {
    const Batch part = batch.narrow(first, count);
    sum += model->loss_weight(part) * model->loss(outputs.narrow(first, count), part).item<double>();
    weight += model->loss_weight(part);
  }
  EXPECT_EQ(weight, kRows);
  EXPECT_NEAR(sum / weight, loss_of(kTwoLosses), 1e-6);
}

TEST_F(OutputLosses, AreSumsOfTheLossesOfSamples) {
  const auto model = with_losses(kTwoLosses, kNamedTargets);
  EXPECT_NEAR(model->losses(outputs, batch).mean().item<double>(), loss_of(kTwoLosses), 1e-6);
}

TEST_F(OutputLosses, OneCountsAsTheLossOfAModel) {
  const auto model = with_losses("[[model.losses]]\noutput = 'logits'\n", kNamedTargets);
  EXPECT_EQ(model->loss_weight(batch), 5) << "three targets do not count";
  EXPECT_TRUE(model->loss(outputs, batch).equal(default_loss()->mean(outputs["logits"], batch["target"])));
  EXPECT_TRUE(model->takes_dense_targets());
  EXPECT_TRUE(dynamic_cast<LossParts&>(*model).loss_parts().empty());
}

TEST_F(OutputLosses, HaveTheNamesOfTheirOutputs) {
  const auto names = [](const std::string& keys) {
    const auto model = with_losses(keys, kNamedTargets);
    std::vector<std::string> names;
    for (const auto& part : dynamic_cast<LossParts&>(*model).loss_parts()) names.push_back(part.name);
    return names;
  };
  EXPECT_THAT(names(kTwoLosses), testing::ElementsAre("logits", "features"));
  EXPECT_THAT(
      names(kTwoLosses + std::string("[[model.losses]]\noutput = 'features'\nloss = 'l1'\n"
                                     "[[model.losses]]\noutput = 'features'\nloss = 'l1'\nname = 'more'\n")),
      testing::ElementsAre("logits", "features_mse", "features_l1", "more"));
}

TEST_F(OutputLosses, TakeDenseTargetsIfThereIsOneOfTheTargets) {
  EXPECT_FALSE(with_losses(kTwoLosses, kNamedTargets)->takes_dense_targets());
  const auto of_bytes = with_losses("[[model.losses]]\noutput = 'logits'\ntarget = 'bytes'\n", kNamedTargets);
  EXPECT_FALSE(of_bytes->takes_dense_targets()) << "MixUp makes 'target' dense, which is not compared";
}

TEST_F(OutputLosses, IgnoreAnIndexInTheTargetsAlone) {
  EXPECT_THAT(refused_losses("ignore_index = 255\n[[model.losses]]\noutput = 'logits'\ntarget = 'bytes'\n"),
              HasSubstr("in 'bytes' the targets that do not count must be -100 in the data"));
}

// As models of tokens give them.
TEST_F(OutputLosses, MayHaveClassesLast) {
  const SampleSpec tokens{{{"input", {4}}, {"target", {4}}}, 3, {{"target", at::kLong}}};
  const Setting losses = resolve_section(
      model_catalog(),
      parse_recipe("[model]\nkind = 'exported'\npath = 'm.pt2'\n[[model.losses]]\n", "r.toml").at("model"),
      {});
  const exported::OutputLosses last(losses.at("losses"), {{"", {4, 3}}}, tokens),
      second(losses.at("losses"), {{"", {3, 4}}}, tokens);
  const at::Tensor scores = at::randn({kRows, 4, 3});
  Batch of_tokens;
  of_tokens.set("target", at::arange(kRows * 4).remainder(3).view({kRows, 4}));
  const at::Tensor wanted = soft_cross_entropy(scores.movedim(-1, 1), of_tokens["target"]);
  EXPECT_TRUE(last.sum(scores, of_tokens).equal(wanted));
  EXPECT_TRUE(second.sum(scores.movedim(-1, 1), of_tokens).equal(wanted));
}

TEST_F(OutputLosses, TakeBytesAsClasses) {
  const auto with_target = [](const std::string& target) {
    return "[[model.losses]]\noutput = 'logits'\ntarget = '" + target + "'\n";
  };
  batch.set("target", batch["bytes"].to(at::kLong));
  EXPECT_EQ(loss_of(with_target("bytes")), loss_of(with_target("target")));
  const std::string weighted = "loss = {kind = 'cross_entropy', weight = [1.0, 2.0, 3.0, 4.0, 5.0]}\n";
  EXPECT_EQ(with_losses(with_target("bytes") + weighted, kNamedTargets)->loss_weight(batch), 21);
}

TEST_F(OutputLosses, WhereThereAreNoneMetricsCompareThePrediction) {
  const auto model = with_losses("prediction = 'logits'\n", kNamedTargets);
  const auto& parts = dynamic_cast<LossParts&>(*model);
  const auto found = parts.compared(outputs["logits"], batch, "logits", "bytes");
  EXPECT_TRUE(found.output.equal(outputs["logits"]));
  EXPECT_EQ(found.target.scalar_type(), at::kLong);
  EXPECT_THAT(message_of<UserError>([&] { parts.compared(outputs["logits"], batch, "features", "target"); }),
              HasSubstr("the model's output is 'logits' alone"));
}

TEST_F(OutputLosses, MayBeComputedByTheProgram) {
  const std::string own =
      "[[model.losses]]\noutput = 'logits'\n[[model.losses]]\noutput = 'features'\nloss = 'own'\n";
  const double classes = cross_entropies().sum().item<double>() / kRows;
  outputs.set("features", at::full({}, 0.25));
  EXPECT_NEAR(loss_of(own), classes + 0.25, 1e-6) << "a mean";
  EXPECT_FALSE(with_losses(own, kNamedTargets)->losses(outputs, batch).defined());
  outputs.set("features", at::arange(kRows, at::kFloat));
  EXPECT_NEAR(loss_of(own), classes + 3.5, 1e-6) << "a number for each sample";
}

TEST_F(OutputLosses, OfTheProgramMayBeANumberForEachSample) {
  const auto model = with_losses("prediction = 'logits'\nloss_output = 'features'\n", kNamedTargets);
  const Outputs found(
      TensorTree::Children{{"prediction", outputs["logits"]}, {"loss", at::arange(kRows, at::kFloat)}});
  EXPECT_EQ(model->loss(found, batch).item<double>(), 3.5);
}

TEST_F(OutputLosses, UseAllRanksWhereOneOfThemDoes) {
  struct OfAllRanks final : Loss {
    LossTargets targets() const override { return LossTargets::kValues; }
    bool uses_all_ranks() const override { return true; }
    at::Tensor mean(const at::Tensor&, const at::Tensor&) const override {
      return at::full({}, ranks().world(), at::kFloat);
    }
    at::Tensor of_samples(const at::Tensor&, const at::Tensor&) const override { return {}; }
  };
  struct Two final : AllRanks {
    int world() const override { return 2; }
  } two;
  const std::string path = TUTTI_SOURCE_DIR "/tests/golden/exported/convnet.pt2";
  Setting keys = resolve_section(
      model_catalog(),
      parse_recipe("[model]\nkind = 'exported'\npath = '" + path +
                       "'\n[[model.losses]]\noutput = 'logits'\n[[model.losses]]\noutput = 'features'\n"
                       "loss = {kind = 'plugin', name = 'a'}\n",
                   "r.toml")
          .at("model"),
      {});
  const auto make = [](const Setting&) -> LossPtr { return std::make_shared<OfAllRanks>(); };
  Setting& second = std::get<Setting::Array>(keys.find("losses")->value)[1];
  second.find("loss")->find("kind")->maker = std::make_shared<const PluginMakerOf<LossPtr>>(make);
  const auto model = make_model(keys, kNamedTargets);
  EXPECT_TRUE(model->uses_all_ranks());
  EXPECT_FALSE(with_losses(kTwoLosses, kNamedTargets)->uses_all_ranks());
  const double alone = model->loss(outputs, batch).item<double>();
  model->set_ranks(&two);
  EXPECT_NEAR(model->loss(outputs, batch).item<double>(), alone + 1, 1e-6);
}

TEST_F(OutputLosses, GiveMetricsTheirOutputAndTarget) {
  const auto model = with_losses(kTwoLosses, kNamedTargets);
  const auto& parts = dynamic_cast<LossParts&>(*model);
  const auto expect_compared = [&](const std::string& output, const std::string& target,
                                   const std::string& as_output, const std::string& as_target) {
    const auto found = parts.compared(outputs, batch, output, target);
    EXPECT_TRUE(found.output.equal(outputs[as_output])) << output << ' ' << target;
    EXPECT_TRUE(found.target.equal(batch[as_target])) << output << ' ' << target;
  };
  expect_compared("", "", "logits", "target");
  expect_compared("features", "", "features", "features");
  expect_compared("", "features", "features", "features");
  expect_compared("features", "target", "features", "target");
  EXPECT_EQ(parts.compared(outputs, batch, "logits", "bytes").target.scalar_type(), at::kLong);
  EXPECT_THAT(message_of<UserError>([&] { parts.compared(outputs, batch, "boxes", "target"); }),
              HasSubstr("the program has no output 'boxes'; it has 'logits', 'features'"));
}

TEST_F(OutputLosses, NameTheLineOfAnOutputOrArrayThatIsNotThere) {
  EXPECT_THAT(
      refused_losses("[[model.losses]]\noutput = 'boxes'\n"),
      AllOf(HasSubstr("r.toml:5: "), HasSubstr("output = \"boxes\": the program has no such output; it "
                                               "has 'logits', 'features'")));
  EXPECT_THAT(refused_losses("[[model.losses]]\nloss = 'mse'\n"),
              AllOf(HasSubstr("r.toml:4: "), HasSubstr("output is missing: the program has 'logits'")));
  EXPECT_THAT(
      refused_losses(
          "[[model.losses]]\noutput = 'logits'\n[[model.losses]]\noutput = 'features'\ntarget = 'box'\n"),
      AllOf(HasSubstr("r.toml:8: "), HasSubstr("target = \"box\": the data has no array 'box'; it has "
                                               "'bytes', 'features', 'input', 'target'")));
}

TEST_F(OutputLosses, NameTheLineOfWhatDoesNotFit) {
  EXPECT_THAT(refused_losses("[[model.losses]]\noutput = 'logits'\ntarget = 'features'\nloss = 'mse'\n"),
              AllOf(HasSubstr("r.toml:5: "),
                    HasSubstr("it ends in [5] a sample, not in outputs [6], as the targets are")));
  EXPECT_THAT(refused_losses("loss = 'mse'\n" + std::string(kTwoLosses)), HasSubstr("excludes losses"));
  EXPECT_THAT(refused_losses("ignore_index = 255\n" + std::string(kTwoLosses)),
              HasSubstr("mse leaves no target out"));
  EXPECT_THAT(refused_losses("[[model.losses]]\noutput = 'logits'\nname = 'total'\n"),
              HasSubstr("r.toml:6: "));
  const std::string twice = "[[model.losses]]\noutput = 'logits'\n[[model.losses]]\noutput = 'logits'\n";
  EXPECT_THAT(refused_losses(twice), HasSubstr("several losses would be logged as 'logits_cross_entropy'"));
}

// A prediction's data has no targets.
TEST_F(OutputLosses, NeedNoTargetsToPredict) {
  const SampleSpec images{{{"input", {3, 6, 6}}}, 0, {{"input", at::kFloat}}};
  const auto model = with_losses(kTwoLosses, images);
  EXPECT_THAT(message_of<UserError>([&] {
                Batch unlabelled;
                unlabelled.set("input", batch["input"]);
                model->loss(outputs, unlabelled);
              }),
              AllOf(HasSubstr("r.toml:5: "), HasSubstr("'target'")));
}

}  // namespace
}  // namespace tutti
