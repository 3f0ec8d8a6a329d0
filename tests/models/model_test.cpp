#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include <map>

#include "models/gpt.h"
#include "models/mlp.h"
#include "models/resnet_cifar.h"
#include "tests/golden/golden_file.h"

namespace tutti {
namespace {

std::shared_ptr<Model> model_of(const std::string& title) {
  if (title == "mlp")
    return std::make_shared<Mlp>(MlpOptions{.in_features = 12, .hidden = {9, 7}, .num_classes = 5});
  if (title == "resnet_cifar")
    return std::make_shared<ResNetCifar>(
        ResNetCifarOptions{.depth = 14, .width = 4, .in_channels = 3, .num_classes = 5});
  return std::make_shared<Gpt>(
      GptOptions{.vocab_size = 17, .n_positions = 12, .n_embd = 16, .n_layer = 2, .n_head = 4});
}

// A model with the weights, and the batch, of a case that PyTorch computed.
class GoldenModel : public testing::TestWithParam<std::string> {
 protected:
  GoldenModel() : case_("models.h5", GetParam()), model_(model_of(case_.text("title"))) {
    materialise(*model_, 1);
    const at::NoGradGuard no_grad;
    for (const NamedParameter& named : parameters(*model_)) load(named.name, named.parameter->tensor);
    for (const NamedBuffer& named : buffers(*model_)) load(named.name, named.buffer->tensor);
    batch_.set("input", case_.tensor("in/input"));
    batch_.set("target", case_.tensor("in/target"));
  }

  void load(const std::string& name, const at::Tensor& into) {
    into.copy_(case_.tensor("in/weights/" + name));
  }

  GoldenCase case_;
  std::shared_ptr<Model> model_;
  Batch batch_;
};

TEST_P(GoldenModel, HasPyTorchsNames) {
  std::vector<std::string> names;
  for (const NamedParameter& named : parameters(*model_)) names.push_back(named.name);
  for (const NamedBuffer& named : buffers(*model_)) names.push_back(named.name);
  EXPECT_THAT(names, testing::UnorderedElementsAreArray(case_.names("in/weights")));
}

TEST_P(GoldenModel, GivesPyTorchsLossAndGradients) {
  const Outputs outputs = model_->forward(batch_);
  const at::Tensor loss = model_->loss(outputs, batch_);
  case_.expect_close(outputs.tensor().detach(), "out/outputs");
  case_.expect_close(loss.detach(), "out/loss");
  loss.backward();
  for (const NamedParameter& named : parameters(*model_))
    case_.expect_close(named.parameter->tensor.grad(), "out/grads/" + named.name);
}

TEST_P(GoldenModel, GivesPyTorchsEvaluationOnceStatisticsAreApplied) {
  std::vector<RunningStatistics> found;
  const ForwardContext training{.training = true, .statistics = &found};
  set_context(*model_, &training);
  model_->forward(batch_);
  for (const RunningStatistics& statistics : found) statistics.layer->apply_statistics(statistics);
  for (const NamedBuffer& named : buffers(*model_))
    case_.expect_close(named.buffer->tensor, "out/buffers/" + named.name);
  const ForwardContext evaluating{.training = false};
  set_context(*model_, &evaluating);
  case_.expect_close(model_->eval_forward(batch_).tensor().detach(), "out/eval_outputs");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModel, testing::ValuesIn(golden_cases("models.h5")),
                         [](const auto& info) { return GoldenCase("models.h5", info.param).text("title"); });

TEST(Model, EvalForwardGivesBackTheOutputsThatItIsGiven) {
  const auto model = model_of("mlp");
  const at::Tensor outputs = at::ones({2, 5});
  EXPECT_TRUE(model->eval_forward({}, Outputs(outputs)).tensor().is_same(outputs));
}

TEST(Mlp, FlattensItsInput) {
  const auto model = model_of("mlp");
  materialise(*model, 1);
  const at::Tensor images = at::randn({2, 3, 2, 2});
  const auto scores = [&](const at::Tensor& x) {
    return model->forward(TensorTree::Children{{"input", x}}).tensor();
  };
  EXPECT_TRUE(scores(images).equal(scores(images.view({2, 12}))));
}

TEST(Gpt, WeighsItsLossByTheTokensThatCount) {
  const auto model = model_of("gpt");
  const Batch batch =
      TensorTree::Children{{"input", at::zeros({2, 3}, at::kLong)},
                           {"target", at::tensor({1, 2, -100, 3, -100, -100}, at::kLong).view({2, 3})}};
  EXPECT_EQ(model->loss_weight(batch), 3);
  EXPECT_EQ(model->tokens(batch), 6);
}

TEST(Gpt, CountsTheOperationsOfAStep) {
  const GptOptions small{.vocab_size = 17, .n_positions = 12, .n_embd = 16, .n_layer = 2, .n_head = 4};
  // A block: four square matrices' worth of attention, eight of the perceptron, 13 vectors.
  const double parameters = (17 + 12) * 16 + 2 * (12 * 16 * 16 + 13 * 16) + 2 * 16;
  const Batch batch{TensorTree::Children{{"input", at::zeros({3, 10}, at::kLong)}}};
  EXPECT_DOUBLE_EQ(Gpt(small).flops_per_batch(batch), 30 * (6 * parameters + 12 * 2 * 16 * 10));
}

TEST(Gpt, StartsAsTransformersDoes) {
  Gpt model({.vocab_size = 64, .n_positions = 64, .n_embd = 128, .n_layer = 8, .n_head = 4});
  materialise(model, 1);
  std::map<std::string, at::Tensor> by_name;
  for (const NamedParameter& named : parameters(model)) by_name[named.name] = named.parameter->tensor;
  const auto deviation = [&](const char* name) { return by_name.at(name).std().item<double>(); };
  EXPECT_NEAR(deviation("transformer.wte.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation("transformer.h.0.attn.c_attn.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation("transformer.h.0.attn.c_proj.weight"), 0.005, 0.0003);
  EXPECT_NEAR(deviation("transformer.h.7.mlp.c_proj.weight"), 0.005, 0.0003);
  EXPECT_EQ(by_name.at("transformer.h.0.mlp.c_fc.bias").abs().sum().item<double>(), 0.0);
}

}  // namespace
}  // namespace tutti
