#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/exported/exported_model.h"
#include "models/losses.h"
#include "models/zoo/catalog.h"
#include "models/zoo/factory.h"
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

TEST_F(OutputLosses, TakeBytesAsClasses) {
  const auto with_target = [](const std::string& target) {
    return "[[model.losses]]\noutput = 'logits'\ntarget = '" + target + "'\n";
  };
  batch.set("target", batch["bytes"].to(at::kLong));
  EXPECT_EQ(loss_of(with_target("bytes")), loss_of(with_target("target")));
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
