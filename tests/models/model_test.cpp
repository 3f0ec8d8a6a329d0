#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "models/losses.h"
#include "models/zoo/gpt.h"
#include "models/zoo/mlp.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

Mlp small_mlp() { return Mlp({.in_features = 12, .hidden = {9, 7}, .num_classes = 5}); }

TEST(Model, EvalForwardGivesBackTheOutputsThatItIsGiven) {
  Mlp model = small_mlp();
  const at::Tensor outputs = at::ones({2, 5});
  EXPECT_TRUE(model.eval_forward({}, Outputs(outputs)).tensor().is_same(outputs));
}

TEST(Mlp, FlattensItsInput) {
  Mlp model = small_mlp();
  materialise(model, 1);
  const at::Tensor images = at::randn({2, 3, 2, 2});
  const auto scores = [&](const at::Tensor& x) {
    return model.forward(TensorTree::Children{{"input", x}}).tensor();
  };
  EXPECT_TRUE(scores(images).equal(scores(images.view({2, 12}))));
}

Setting named_loss(const std::string& name) { return Setting(name, "model.loss", {}); }

const Batch kLabelled = TensorTree::Children{{"target", at::tensor({1, 0, 4}, at::kLong)}};

// As models of plugins may be.
struct Unreduced final : Model {
  TensorTree forward(const Batch& batch) override { return batch["input"]; }
  at::Tensor loss(const Outputs&, const Batch&) override { return found; }
  const char* kind() const override { return "Unreduced"; }

  at::Tensor found;
};

TEST(Model, LossThatIsNotOneNumberIsAUserError) {
  Unreduced model;
  EXPECT_THAT(message_of<UserError>([&] { mean_loss(model, {}, {}); }), testing::HasSubstr("is undefined"));
  model.found = at::ones({2});
  EXPECT_THAT(message_of<UserError>([&] { mean_loss(model, {}, {}); }),
              testing::HasSubstr("the loss of Unreduced has the shape [2]; expected one number"));
  model.found = at::ones({1});
  EXPECT_TRUE(mean_loss(model, {}, {}).is_same(model.found));
}

TEST(Classifier, LossesOfSamplesAverageToItsLoss) {
  const at::Tensor scores = at::linspace(-2, 2, 15).view({3, 5});
  for (const char* name : {"soft_cross_entropy", "binary_cross_entropy_with_logits"}) {
    Mlp model = small_mlp();
    choose_loss(model, named_loss(name));
    const Batch dense = TensorTree::Children{{"target", at::softmax(scores.flip({1}), 1)}};
    for (const Batch& batch : {kLabelled, dense}) {
      const at::Tensor losses = model.losses(scores, batch);
      EXPECT_EQ(losses.sizes(), at::IntArrayRef({3})) << name;
      EXPECT_TRUE(at::allclose(losses.mean(), model.loss(scores, batch))) << name;
    }
  }
}

TEST(Classifier, OfLabelsHasNoMetricOfClasses) {
  Mlp model = small_mlp();
  EXPECT_EQ(model.get_metrics(/*is_train=*/false).size(), 2);
  model.set_labels(true);
  EXPECT_TRUE(model.get_metrics(/*is_train=*/false).empty());
}

TEST(Classifier, TrainsOnTheLossThatIsChosen) {
  const at::Tensor scores = at::linspace(-2, 2, 15).view({3, 5});
  Mlp model = small_mlp();
  EXPECT_TRUE(at::equal(model.loss(scores, kLabelled), soft_cross_entropy(scores, kLabelled["target"])));
  choose_loss(model, named_loss("binary_cross_entropy_with_logits"));
  EXPECT_TRUE(
      at::equal(model.loss(scores, kLabelled),
                binary_cross_entropy_with_logits(scores, kLabelled["target"], BinaryCrossEntropyOptions())));
  EXPECT_THROW(choose_loss(model, named_loss("l0")), UserError);
}

TEST(Classifier, WeighsItsLossByTheTargetsThatCount) {
  Mlp model = small_mlp();
  const Batch some = TensorTree::Children{{"target", at::tensor({1, -100, 4}, at::kLong)}};
  EXPECT_EQ(model.loss_weight(some), 2);
  const at::Tensor scores = at::linspace(-2, 2, 15).view({3, 5});
  const at::Tensor losses = model.losses(scores, some);
  EXPECT_EQ(losses[1].item<float>(), 0);
  EXPECT_TRUE(at::allclose(losses.sum() / 2, model.loss(scores, some)));
  choose_loss(model, named_loss("binary_cross_entropy_with_logits"));
  EXPECT_EQ(model.loss_weight(some), 3) << "one of no class";
}

TEST(Gpt, HasALossOfItsOwn) {
  Gpt model({.vocab_size = 17, .n_positions = 12, .n_embd = 16, .n_layer = 1, .n_head = 4});
  EXPECT_THROW(choose_loss(model, named_loss("soft_cross_entropy")), UserError);
}

TEST(Gpt, LossesOfSamplesAreMeansOverTheirTokens) {
  Gpt model({.vocab_size = 17, .n_positions = 12, .n_embd = 16, .n_layer = 1, .n_head = 4});
  const at::Tensor scores = at::linspace(-2, 2, 102).view({2, 3, 17});
  const Batch batch =
      TensorTree::Children{{"target", at::tensor({1, 2, -100, 3, 16, -100}, at::kLong).view({2, 3})}};
  const at::Tensor losses = model.losses(scores, batch);
  for (int64_t i = 0; i < 2; ++i)
    EXPECT_TRUE(at::allclose(losses[i], model.loss(scores.narrow(0, i, 1), batch.narrow(i, 1))));
}

TEST(Gpt, WeighsItsLossByTheTokensThatCount) {
  const Gpt model({.vocab_size = 17, .n_positions = 12, .n_embd = 16, .n_layer = 2, .n_head = 4});
  const Batch batch =
      TensorTree::Children{{"input", at::zeros({2, 3}, at::kLong)},
                           {"target", at::tensor({1, 2, -100, 3, -100, -100}, at::kLong).view({2, 3})}};
  EXPECT_EQ(model.loss_weight(batch), 3);
  EXPECT_EQ(model.tokens(batch), 6);
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
