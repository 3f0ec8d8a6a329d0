#include "models/script/script_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "models/zoo/catalog.h"
#include "models/zoo/factory.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string script_file(const std::string& name) {
  return TUTTI_SOURCE_DIR "/tests/golden/scripts/" + name + ".pt";
}

SampleSpec four_numbers() {
  return {{{"input", {4}}, {"target", {}}}, 3, {{"input", at::kFloat}, {"target", at::kLong}}};
}
SampleSpec rgb_images() {
  return {{{"input", {3, 6, 6}}, {"target", {}}}, 5, {{"input", at::kFloat}, {"target", at::kLong}}};
}

std::shared_ptr<Model> made(const std::string& name, const SampleSpec& samples,
                            std::vector<std::pair<std::string, Setting::Value>> more = {}) {
  more.insert(more.begin(), {{"kind", std::string("torchscript")}, {"path", script_file(name)}});
  return make_model(section_with(more), samples);
}

std::string refusal(const std::string& name, const SampleSpec& samples,
                    std::vector<std::pair<std::string, Setting::Value>> more = {}) {
  return message_of<UserError>([&] { made(name, samples, more); });
}

std::vector<std::string> names_of(Model& model) {
  std::vector<std::string> names;
  for (const auto& one : parameters(model)) names.push_back(one.name);
  return names;
}

TEST(ScriptModel, HasTheModulesOfThePythonModel) {
  const auto model = made("traced", rgb_images());
  std::map<std::string, std::string> kinds;
  for (const auto& [name, layer] : layers(*model)) kinds[name] = layer->kind();
  EXPECT_THAT(kinds, Contains(testing::Pair("stem.0", "Conv2d")));
  EXPECT_THAT(kinds, Contains(testing::Pair("stem.1", "BatchNorm2d")));
  EXPECT_THAT(kinds, Contains(testing::Pair("head", "Linear")));
  EXPECT_THAT(names_of(*model), Contains("block.norm.weight"));
  std::vector<std::string> names;
  for (const auto& one : buffers(*model)) names.push_back(one.name);
  EXPECT_THAT(names, Contains("block.norm.num_batches_tracked"));
}

TEST(ScriptModel, KeepsTiedWeightsAndWhatIsNotTrained) {
  ScriptModel language({.path = script_file("language")}), control({.path = script_file("control_flow")});
  EXPECT_EQ(std::ranges::count(names_of(language), "tokens.weight"), 1);
  for (const auto& one : parameters(control))
    EXPECT_EQ(one.parameter->trained, !one.name.starts_with("frozen")) << one.name;
}

TEST(ScriptModel, ReadsTheWeightsOfTheFileOnceItHasLeftThem) {
  const auto fitted = made("traced", rgb_images());
  ScriptModel other({.path = script_file("traced")});
  materialise(*fitted, 1);
  materialise(other, 2);
  materialise(*made("traced", rgb_images()), 3);
  const auto mine = parameters(*fitted), others = parameters(other);
  ASSERT_EQ(mine.size(), others.size());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    EXPECT_TRUE(mine[i].parameter->tensor.equal(others[i].parameter->tensor)) << mine[i].name;
    at::Tensor again = at::zeros_like(mine[i].parameter->tensor);
    mine[i].parameter->init(again, {});
    EXPECT_TRUE(again.equal(others[i].parameter->tensor)) << "read from the file again";
  }
}

// A trace updates them whatever the mode is, also in the pass by which losses are planned.
TEST(ScriptModel, KeepsTheStatisticsOfTheFile) {
  const auto planned = made("traced", rgb_images());
  ScriptModel plain({.path = script_file("traced")});
  materialise(*planned, 1);
  materialise(plain, 1);
  const auto given = buffers(*planned), expected = buffers(plain);
  ASSERT_FALSE(expected.empty());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(given.at(i).buffer->tensor.equal(expected[i].buffer->tensor)) << expected[i].name;
}

TEST(ScriptModel, DrawsDropoutByThePlacesOfSamples) {
  ScriptModel model({.path = script_file("drops")});
  materialise(model, 1);
  Batch batch;
  batch.set("input", at::ones({8, 5, 6}));
  ForwardContext context;
  context.source = [](std::string_view name, int64_t place) { return make_draws(5, {name, 0, place}); };
  const ContextScope scope(model, context);
  const auto outputs = [&](int64_t first, int64_t count) {
    context.begin_pass(first);
    return model.forward(batch.narrow(first, count)).tensor().detach();
  };
  const at::Tensor whole = outputs(0, 8);
  EXPECT_FALSE(whole[0].equal(whole[1])) << "samples alike have the same masks";
  EXPECT_TRUE(at::allclose(whole.narrow(0, 4, 4), outputs(4, 4), 1e-4, 1e-5));
  EXPECT_GT(whole.eq(0).sum().item<int64_t>(), 0);
  const EvaluationMode evaluation(model);
  const at::Tensor plain = outputs(0, 8);
  EXPECT_TRUE(plain[0].equal(plain[1]));
}

// A trace says of an LSTM, AlphaDropout and RReLU that they are in training.
TEST(ScriptModel, HasOperatorsOfATraceInTheModeOfTheModel) {
  ScriptModel model({.path = script_file("modes")});
  materialise(model, 1);
  Batch batch;
  batch.set("input", at::ones({6, 4}));
  const auto forward = [&] { return model.forward(batch).tensor().detach(); };
  EXPECT_FALSE(forward().equal(forward()));
  const EvaluationMode evaluation(model);
  EXPECT_TRUE(forward().equal(forward()));
}

TEST(ScriptModel, RefusesScriptsThatChangeWhatLasts) {
  EXPECT_THAT(refusal("sets_attribute", four_numbers()),
              HasSubstr("sets the attribute 'seen' of a module; forward may change nothing that lasts"));
  const auto model = made("writes_buffer", four_numbers());
  materialise(*model, 1);
  Batch batch;
  batch.set("input", at::ones({2, 4}));
  EXPECT_THAT(message_of<UserError>([&] { model->forward(batch); }),
              HasSubstr("forward writes the buffer 'seen'; but for the statistics of batch norm"));
  const auto clamps = made("writes_parameter", four_numbers());
  materialise(*clamps, 1);
  EXPECT_THAT(message_of<UserError>([&] { clamps->forward(batch); }),
              HasSubstr("forward writes the parameter 'weight'"));
}

TEST(ScriptModel, RefusesToTrainANormThatATraceCallsTwice) {
  ScriptModel model({.path = script_file("calls_norm_twice")});
  materialise(model, 1);
  Batch batch;
  batch.set("input", at::arange(24, at::kFloat).sin().view({6, 4}));
  EXPECT_THAT(message_of<UserError>([&] { model.forward(batch); }),
              HasSubstr("the batch norm is called by a module above its own"));
  const EvaluationMode evaluation(model);
  const auto forward = [&](int64_t samples) {
    return model.forward(batch.narrow(0, samples)).tensor().detach().narrow(0, 0, 2);
  };
  EXPECT_TRUE(at::allclose(forward(6), forward(2))) << "by the batch's statistics";
}

TEST(ScriptModel, RefusesWhatItCannotRun) {
  EXPECT_THAT(refusal("forks", four_numbers()), testing::ContainsRegex("prim::fork .*is not known to tutti"));
  EXPECT_THAT(refusal("frozen", four_numbers()),
              HasSubstr("it has no parameters to train: torch.jit.freeze"));
  SampleSpec many = rgb_images();
  many.classes = 7;
  EXPECT_THAT(refusal("traced", many),
              HasSubstr("they end in 5 scores a sample; the data has targets up to 6"));
}

TEST(ScriptModel, ComputesItsLossWhereItIsAnOutput) {
  const std::vector<std::pair<std::string, Setting::Value>> keys{
      {"inputs", list_value({std::string("input"), std::string("target")})},
      {"prediction", std::string("0")},
      {"loss_output", std::string("1")}};
  const auto model = made("own_loss", four_numbers(), keys);
  materialise(*model, 1);
  Batch batch;
  batch.set("input", at::ones({2, 4}));
  batch.set("target", at::ones({2}, at::kLong));
  const Outputs outputs = model->forward(batch);
  EXPECT_TRUE(
      model->loss(outputs, batch).allclose(at::cross_entropy_loss(outputs["prediction"], batch["target"])));
}

TEST(ScriptModel, NamesTheOutputsAndInputsThatThereAre) {
  EXPECT_THAT(refusal("traced", rgb_images(), {{"prediction", std::string("scores")}}),
              HasSubstr("prediction: the script has no output 'scores'; it has 'logits', 'features'"));
  EXPECT_THAT(message_of<UserError>([] {
                ScriptModel({.path = script_file("control_flow"), .inputs = {"a", "b", "c"}});
              }),
              HasSubstr("inputs: forward takes 'x', 'mask'; found 3 arrays"));
}

TEST(ScriptModel, NamesTheModuleAndTheOperatorOfAMistake) {
  ScriptModel model({.path = script_file("control_flow")});
  materialise(model, 1);
  Batch batch;
  batch.set("input", at::ones({2, 3, 7}));
  EXPECT_THAT(message_of<UserError>([&] { model.forward(batch); }),
              testing::ContainsRegex("in cell.inner .Linear.*aten::linear .*cannot be multiplied"));
  EXPECT_THAT(refusal("control_flow", rgb_images(), {{"inputs", list_value({std::string("pixels")})}}),
              testing::AllOf(HasSubstr("inputs"), HasSubstr("no array 'pixels' in the samples")));
}

// A file that is cut off anywhere, or of another kind.
TEST(ScriptModel, RefusesFilesThatAreNone) {
  const Scratch folder;
  std::ostringstream whole;
  whole << std::ifstream(script_file("drops"), std::ios::binary).rdbuf();
  const std::string bytes = whole.str(), path = folder.path("cut.pt");
  for (std::size_t size = 0; size < bytes.size(); size += bytes.size() / 20) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    EXPECT_THAT(message_of<UserError>([&] { ScriptModel({.path = path}); }),
                HasSubstr(path + ": it is no whole file of torch.jit.save"));
  }
  EXPECT_THAT(message_of<UserError>([&] { ScriptModel({.path = folder.path("none.pt")}); }),
              HasSubstr("there is no file"));
}

}  // namespace
}  // namespace tutti
