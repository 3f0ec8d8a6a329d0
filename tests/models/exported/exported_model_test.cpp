#include "models/exported/exported_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "models/layers/activation.h"
#include "models/layers/conv.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/zoo/catalog.h"
#include "models/zoo/factory.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string program(const std::string& name) {
  return TUTTI_SOURCE_DIR "/tests/golden/exported/" + name + ".pt2";
}

SampleSpec images(const Shape& shape = {3, 6, 6}, at::ScalarType dtype = at::kFloat) {
  return {{{"input", shape}, {"target", {}}}, 5, {{"input", dtype}, {"target", at::kLong}}};
}

std::shared_ptr<Model> made(const Setting& section, const SampleSpec& samples = images()) {
  return make_model(section, samples);
}

Setting convnet(std::vector<std::pair<std::string, Setting::Value>> more = {}) {
  more.insert(more.begin(), {{"kind", std::string("exported")}, {"path", program("convnet")}});
  return section_with(more);
}

std::string refusal(const Setting& section, const SampleSpec& samples = images()) {
  return message_of<UserError>([&] { made(section, samples); });
}

TEST(ExportedModel, HasTheModulesOfThePythonModel) {
  const auto model = made(convnet());
  std::map<std::string, std::string> kinds;
  for (const auto& [name, layer] : layers(*model)) kinds[name] = layer->kind();
  EXPECT_THAT(kinds, Contains(testing::Pair("stem.0", "Conv2d")));
  EXPECT_THAT(kinds, Contains(testing::Pair("stem.1", "BatchNorm2d")));
  EXPECT_THAT(kinds, Contains(testing::Pair("head", "Linear")));
  std::vector<std::string> names;
  for (const auto& one : buffers(*model))
    if (one.buffer->persistent) names.push_back(one.name);
  EXPECT_THAT(names, Contains("mean"));
  EXPECT_THAT(names, Contains("block.norm.num_batches_tracked"));
  EXPECT_THAT(names, testing::Not(Contains("unsaved")));
}

template <class Kind>
const Kind* find_layer(Model& model, const std::string& name) {
  for (const auto& [path, layer] : layers(model))
    if (path == name) return dynamic_cast<const Kind*>(layer);
  return nullptr;
}

TEST(ExportedModel, HasLayersThatSurgeryKnows) {
  const auto model = made(convnet());
  const auto* const grouped = find_layer<Conv2d>(*model, "block.conv");
  ASSERT_NE(grouped, nullptr);
  EXPECT_EQ(grouped->options().in_channels, 6);
  EXPECT_EQ(grouped->options().groups, 2);
  EXPECT_EQ(grouped->options().padding, Extent2d(1));
  EXPECT_NE(grouped->bias(), nullptr);
  const auto* const stem = find_layer<Conv2d>(*model, "stem.0");
  ASSERT_NE(stem, nullptr);
  EXPECT_EQ(stem->bias(), nullptr);
  const auto* const head = find_layer<Linear>(*model, "head");
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(head->out_features(), 5);
  ExportedModel language({.path = program("language")}), shared({.path = program("shared")});
  EXPECT_NE(find_layer<LayerNorm>(language, "blocks.0.norm"), nullptr);
  EXPECT_NE(find_layer<Dropout>(language, "drop"), nullptr);
  EXPECT_EQ(find_layer<Linear>(shared, "twice.0"), nullptr) << "it is called twice";
}

TEST(ExportedModel, KeepsTiedWeightsUnderTheFirstOfTheirNames) {
  const ExportedModel model({.path = program("language")});
  std::vector<std::string> names;
  for (const auto& one : parameters(const_cast<ExportedModel&>(model))) names.push_back(one.name);
  EXPECT_EQ(std::ranges::count(names, "tokens.weight"), 1);
}

TEST(ExportedModel, TrainsWhatTheProgramTrains) {
  ExportedModel model({.path = program("tied")});  // whose file has the table as 'head.weight' too
  std::map<std::string, bool> trained;
  for (const auto& one : parameters(model)) trained[one.name] = one.parameter->trained;
  EXPECT_THAT(trained, testing::UnorderedElementsAre(testing::Pair("tokens.weight", true),
                                                     testing::Pair("fixed.weight", false),
                                                     testing::Pair("fixed.bias", false)));
  EXPECT_NE(find_layer<Linear>(model, "fixed"), nullptr);
}

TEST(ExportedModel, OfOneOutputHasNoNameForIt) {
  const ExportedModel model({.path = program("tied")});
  EXPECT_THAT(message_of<UserError>([&] { model.compared(at::ones({2}), {}, "logits", ""); }),
              HasSubstr("the program has one output without a name; leave this key out"));
}

TEST(ExportedModel, DrawsDropoutByThePlacesOfSamples) {
  const auto model = std::make_shared<ExportedModel>(
      ExportedOptions{.path = TUTTI_SOURCE_DIR "/examples/data/digits_net.pt2"});
  materialise(*model, 1);
  Batch batch;
  batch.set("input", at::ones({8, 1, 8, 8}));
  ForwardContext context;
  context.source = [](std::string_view name, int64_t place) { return make_draws(5, {name, 0, place}); };
  const auto outputs = [&](int64_t first, int64_t count) {
    context.begin_pass(first);
    set_context(*model, &context);
    const at::Tensor found = model->forward(batch.narrow(first, count)).tensor().detach();
    set_context(*model, nullptr);
    return found;
  };
  const at::Tensor whole = outputs(0, 8);
  EXPECT_FALSE(whole[0].equal(whole[1])) << "samples alike have the same masks";
  EXPECT_TRUE(at::allclose(whole.narrow(0, 4, 4), outputs(4, 4), 1e-4, 1e-5));
}

TEST(ExportedModel, ABatchOutlivesAProgramThatWritesIntoIt) {
  ExportedModel model({.path = program("drops")});
  materialise(model, 1);
  const at::Tensor input = at::ones({8, 5, 6});
  model.forward(Batch(TensorTree::Children{{"input", input}}));
  EXPECT_TRUE(input.equal(at::ones({8, 5, 6})))
      << "a closure, or a step that is retried, reads the batch again";
}

// Attention, stochastic depth, dropout in place and of channels.
TEST(ExportedModel, DrawsInItsOperatorsByThePlacesOfSamples) {
  ExportedModel model({.path = program("drops")});
  materialise(model, 1);
  const Batch batch(TensorTree::Children{{"input", at::ones({8, 5, 6})}});
  ForwardContext context;
  context.source = [](std::string_view name, int64_t place) { return make_draws(5, {name, 0, place}); };
  const ContextScope scope(model, context);
  const auto outputs = [&](int64_t first, int64_t count) {
    context.begin_pass(first);
    return model.forward(batch.narrow(first, count)).tensor().detach();
  };
  const at::Tensor whole = outputs(0, 8);
  EXPECT_FALSE(whole.equal(whole[0].expand_as(whole))) << "samples alike have the same masks";
  EXPECT_TRUE(at::allclose(whole.narrow(0, 4, 4), outputs(4, 4), 1e-4, 1e-5));
  const EvaluationMode evaluation(model);
  const at::Tensor plain = outputs(0, 8);
  EXPECT_TRUE(plain[0].equal(plain[1]));
}

TEST(ExportedModel, RefusesDataThatTheProgramDoesNotTake) {
  EXPECT_THAT(
      refusal(convnet(), images({1, 6, 6})),
      HasSubstr("its input 'x' is Float [3, 6, 6] a sample; 'input' of the data is float32 [1, 6, 6]"));
  EXPECT_THAT(refusal(convnet(), images({3, 6, 6}, at::kByte)), HasSubstr("is uint8 [3, 6, 6]"));
  SampleSpec many = images();
  many.classes = 7;
  EXPECT_THAT(refusal(convnet(), many),
              HasSubstr("they end in 5 scores a sample; the data has targets up to 6"));
}

TEST(ExportedModel, RefusesMoreSamplesThanTheProgramTakes) {
  ExportedModel model({.path = program("convnet")});  // of Dim(min=2, max=63)
  materialise(model, 1);
  const auto forward = [&](int64_t samples) {
    model.forward(Batch(TensorTree::Children{{"input", at::zeros({samples, 3, 6, 6})}}));
  };
  EXPECT_NO_THROW(forward(63));
  EXPECT_THAT(message_of<UserError>([&] { forward(64); }),
              HasSubstr("was exported for at most 63 samples at once, and gets 64"));
}

TEST(ExportedModel, NamesTheOutputsAndInputsThatThereAre) {
  EXPECT_THAT(refusal(convnet({{"prediction", std::string("scores")}})),
              HasSubstr("prediction: the program has no output 'scores'; it has 'logits', 'features'"));
  EXPECT_THAT(refusal(convnet({{"loss_output", std::string("loss")}})),
              HasSubstr("loss_output: the program has no"));
  EXPECT_THAT(message_of<UserError>([] {
                ExportedModel({.path = program("convnet"), .inputs = {"a", "b"}});
              }),
              HasSubstr("inputs: the program takes 'x'; found 2 arrays"));
}

// A module of Python's has no such key in its state dict.
TEST(ExportedModel, DoesNotSaveTensorsThatAreNoBuffers) {
  ExportedModel model({.path = program("odd")});
  std::map<std::string, bool> saved;
  for (const auto& one : buffers(model)) saved[one.name] = one.buffer->persistent;
  EXPECT_THAT(saved, Contains(testing::Pair("order", false)));
  EXPECT_THAT(saved, Contains(testing::Pair("norm.running_mean", true)));
}

TEST(ExportedModel, HasOperatorsInTheModeOfTheModel) {
  ExportedModel model({.path = program("modes")});  // of an LSTM, AlphaDropout and RReLU
  materialise(model, 1);
  const Batch batch(TensorTree::Children{{"input", at::ones({6, 4})}});
  const auto forward = [&] { return model.forward(batch).tensor().detach(); };
  EXPECT_FALSE(forward().equal(forward()));
  const EvaluationMode evaluation(model);
  EXPECT_TRUE(forward().equal(forward()));
}

TEST(ExportedModel, RefusesWhatItDoesNotRun) {
  const auto refusal_of = [](const std::string& name) {
    return message_of<UserError>([&] { ExportedModel({.path = program(name)}); });
  };
  EXPECT_THAT(refusal_of("complex"), HasSubstr("'turn' has complex numbers, which checkpoints do not hold"));
  EXPECT_THAT(refusal_of("foreign_norm"), HasSubstr("a batch norm has as running_mean 'mean'"));
  EXPECT_THAT(refusal_of("branches"), HasSubstr("calls 'higher_order.cond', which tutti does not know"));
  EXPECT_THAT(refusal_of("decomposed"), HasSubstr("it was changed by run_decompositions"));
}

TEST(ExportedModel, RefusesToWriteABufferAlsoWithoutGradients) {
  ExportedModel model({.path = program("writes_unseen")});
  materialise(model, 1);
  EXPECT_THAT(message_of<UserError>([&] {
                model.forward(Batch(TensorTree::Children{{"input", at::ones({6, 4})}}));
              }),
              HasSubstr("forward writes the buffer 'mean'"));
}

// Of a loss of the program's own, which needs no target.
TEST(ExportedModel, MeasuresTargetsOnlyIfTheDataHasThem) {
  const auto metrics = [](const SampleSpec& samples) {
    return made(convnet({{"loss_output", std::string("features")}}), samples)->get_metrics(false);
  };
  SampleSpec unlabelled = images();
  unlabelled.shapes.erase("target");
  EXPECT_THAT(metrics(unlabelled), testing::IsEmpty());
  EXPECT_THAT(metrics(images()), testing::SizeIs(2));
}

// A file that is cut off anywhere, or of another kind.
TEST(ExportedModel, RefusesFilesThatAreNone) {
  const Scratch folder;
  std::ostringstream whole;
  whole << std::ifstream(program("shared"), std::ios::binary).rdbuf();
  const std::string bytes = whole.str(), path = folder.path("cut.pt2");
  for (std::size_t size = 0; size < bytes.size(); size += bytes.size() / 50) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    EXPECT_THAT(message_of<UserError>([&] { ExportedModel({.path = path}); }),
                HasSubstr(path + " is no whole file of torch.export.save"));
  }
  EXPECT_THAT(message_of<UserError>([&] { ExportedModel({.path = folder.path("none.pt2")}); }),
              HasSubstr("there is no file"));
}

}  // namespace
}  // namespace tutti
