#include "models/zoo/bert.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "runtime/error.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const BertOptions kSmallBert{.vocab_size = 19,
                             .hidden_size = 8,
                             .num_hidden_layers = 2,
                             .num_attention_heads = 2,
                             .intermediate_size = 12,
                             .max_position_embeddings = 10};

Batch bert_batch(const at::Tensor& tokens) { return TensorTree::Children{{"input_ids", tokens}}; }

at::Tensor some_tokens() { return at::arange(12, at::kLong).view({2, 6}); }

at::Tensor scores_of(Model& model, const Batch& batch) {
  const ForwardContext evaluating{.training = false};
  set_context(model, &evaluating);
  at::Tensor outputs = model.forward(batch).tensor().detach();
  set_context(model, nullptr);
  return outputs;
}

TEST(Bert, PaddingChangesNothingForTheOtherTokens) {
  BertForMaskedLm model(kSmallBert);
  materialise(model, 1);
  Batch padded = bert_batch(at::cat({some_tokens(), at::zeros({2, 3}, at::kLong)}, 1));
  padded.set("attention_mask", at::cat({at::ones({2, 6}, at::kLong), at::zeros({2, 3}, at::kLong)}, 1));
  const at::Tensor alone = scores_of(model, bert_batch(some_tokens()));
  EXPECT_TRUE(at::allclose(scores_of(model, padded).narrow(1, 0, 6), alone, 1e-5, 1e-6));
}

TEST(Bert, TypesOfTokensAreZeroWhereTheBatchHasNone) {
  BertForMaskedLm model(kSmallBert);
  materialise(model, 1);
  const at::Tensor without = scores_of(model, bert_batch(some_tokens()));
  Batch typed = bert_batch(some_tokens());
  typed.set("token_type_ids", at::zeros({2, 6}, at::kLong));
  EXPECT_TRUE(scores_of(model, typed).equal(without));
  typed.set("token_type_ids", at::ones({2, 6}, at::kLong));
  EXPECT_FALSE(scores_of(model, typed).equal(without));
}

TEST(Bert, ReadsArraysByEitherName) {
  BertForMaskedLm model(kSmallBert);
  materialise(model, 1);
  const at::Tensor labels = at::full({2, 6}, 3, at::kLong);
  Batch own = TensorTree::Children{{"input", some_tokens()}, {"target", labels}};
  Batch theirs = TensorTree::Children{{"input_ids", some_tokens()}, {"labels", labels}};
  const at::Tensor outputs = scores_of(model, own);
  EXPECT_TRUE(outputs.equal(scores_of(model, theirs)));
  EXPECT_TRUE(model.loss(outputs, own).equal(model.loss(outputs, theirs)));
  EXPECT_EQ(model.tokens(own), 12);
}

TEST(Bert, TheLossIsAMeanOverTheLabelsThatCount) {
  BertForMaskedLm model(kSmallBert);
  Batch batch = bert_batch(at::zeros({1, 3}, at::kLong));
  batch.set("labels", at::tensor({4, -100, 1}, at::kLong).view({1, 3}));
  at::Tensor scores = at::zeros({1, 3, 19});
  scores[0][0][4] = 2.0;
  const double rest = std::log(std::exp(2.0) + 18.0) - 2.0;
  EXPECT_NEAR(model.loss(scores, batch).item<double>(), (rest + std::log(19.0)) / 2, 1e-6);
  EXPECT_EQ(model.loss_weight(batch), 2);
}

TEST(Bert, LossesOfSamplesAreMeansOverTheirLabels) {
  BertForMaskedLm tokens(kSmallBert);
  const at::Tensor scores = at::linspace(-2, 2, 114).view({2, 3, 19});
  const Batch masked =
      TensorTree::Children{{"labels", at::tensor({1, 2, -100, 3, 16, -100}, at::kLong).view({2, 3})}};
  BertForSequenceClassification classes(kSmallBert, 5, 0.0);
  const at::Tensor of_classes = at::linspace(-2, 2, 10).sin().view({2, 5});
  const Batch labelled = TensorTree::Children{{"target", at::tensor({4, 1}, at::kLong)}};
  for (const auto& [model, outputs, batch] :
       {std::tuple<Model*, at::Tensor, Batch>(&tokens, scores, masked), {&classes, of_classes, labelled}}) {
    const at::Tensor losses = model->losses(outputs, batch);
    ASSERT_EQ(losses.sizes(), at::IntArrayRef({2}));
    for (int64_t i = 0; i < 2; ++i)
      EXPECT_TRUE(at::allclose(losses[i], model->loss(outputs.narrow(0, i, 1), batch.narrow(i, 1)))) << i;
  }
  const Batch nothing = TensorTree::Children{{"labels", at::full({2, 3}, -100, at::kLong)}};
  EXPECT_TRUE(tokens.losses(scores, nothing).equal(at::zeros({2})));
}

TEST(Bert, DropoutIsOfTrainingAlone) {
  BertForMaskedLm model(kSmallBert);
  materialise(model, 1);
  EXPECT_TRUE(scores_of(model, bert_batch(some_tokens())).equal(scores_of(model, bert_batch(some_tokens()))));
  EXPECT_FALSE(model.forward(bert_batch(some_tokens()))
                   .tensor()
                   .equal(model.forward(bert_batch(some_tokens())).tensor()));
}

TEST(Bert, CountsTheOperationsOfAStep) {
  const BertForMaskedLm model(kSmallBert);
  // Embeddings and their norm; a block: four square matrices with biases, two of the feed-forward block, two
  // norms; the head: a matrix, a norm, a bias a token.
  const double parameters =
      (19 + 10 + 2) * 8 + 16 + 2 * (4 * 72 + (8 * 12 + 12) + (12 * 8 + 8) + 2 * 16) + 72 + 16 + 19;
  EXPECT_DOUBLE_EQ(model.flops_per_batch(bert_batch(some_tokens())), 12 * (6 * parameters + 12 * 2 * 8 * 6));
}

TEST(Bert, StartsAsTransformersDoes) {
  BertOptions options = kSmallBert;
  options.hidden_size = 128;
  options.vocab_size = 100;
  BertForSequenceClassification model(options, 200, 0.0);
  materialise(model, 1);
  std::map<std::string, at::Tensor> by_name;
  for (const NamedParameter& named : parameters(model)) by_name[named.name] = named.parameter->tensor;
  const auto deviation = [&](const char* name) { return by_name.at(name).std().item<double>(); };
  EXPECT_NEAR(deviation("bert.embeddings.word_embeddings.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation("bert.encoder.layer.1.attention.self.value.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation("bert.pooler.dense.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation("classifier.weight"), 0.02, 0.001);
  EXPECT_EQ(by_name.at("classifier.bias").abs().sum().item<double>(), 0.0);
  EXPECT_EQ(by_name.at("bert.embeddings.word_embeddings.weight")[0].abs().sum().item<double>(), 0.0);
}

TEST(Bert, IsMeasuredAsComposersIs) {
  EXPECT_THAT(BertForMaskedLm(kSmallBert).get_metrics(false),
              ElementsAre("LanguageCrossEntropy", "MaskedAccuracy"));
  EXPECT_THAT(BertForMaskedLm(kSmallBert).get_metrics(true), ElementsAre("MaskedAccuracy"));
  EXPECT_THAT(BertForSequenceClassification(kSmallBert, 3, 0.1).get_metrics(false),
              ElementsAre("MulticlassAccuracy"));
  EXPECT_THAT(BertForSequenceClassification(kSmallBert, 2, 0.1).get_metrics(false),
              ElementsAre("MulticlassAccuracy", "BinaryF1Score"));
}

using LossKeys = std::vector<std::pair<std::string, Setting::Value>>;

// Of outputs [4, outputs], by the loss of these keys, of a target under either name.
void expect_loss(const LossKeys& loss, const at::Tensor& outputs, const at::Tensor& target,
                 const at::Tensor& expected, double weight = 4) {
  BertForSequenceClassification model(kSmallBert, outputs.size(1), 0.0);
  choose_loss(model, section_with(loss));
  model.set_labels(target.sizes() == outputs.sizes());
  for (const char* name : {"labels", "target"}) {
    const Batch batch = TensorTree::Children{{name, target}};
    EXPECT_NEAR(model.loss(outputs, batch).item<double>(), expected.item<double>(), 1e-6) << name;
    EXPECT_EQ(model.loss_weight(batch), weight) << name;
    EXPECT_EQ(model.losses(outputs, batch).sizes(), at::IntArrayRef({4})) << name;
  }
}

TEST(BertForSequences, HasTorchsLossOfWeightedClasses) {
  const at::Tensor scores = at::linspace(-2, 3, 12).sin().mul(2).view({4, 3});
  const at::Tensor target = at::tensor({2, 0, -100, 1}, at::kLong);
  const at::Tensor logs = at::log_softmax(scores, 1);
  const at::Tensor weighed = 0.5 * logs[0][2] + 2.0 * logs[1][0] + 1.0 * logs[3][1];
  expect_loss({{"kind", std::string("cross_entropy")}, {"weight", list_value({2.0, 1.0, 0.5})}}, scores,
              target, -weighed / 3.5, 3.5);
}

TEST(BertForSequences, HasTorchsLossOfSeveralLabels) {
  const at::Tensor scores = at::linspace(-2, 3, 12).sin().mul(2).view({4, 3});
  const at::Tensor labels = at::arange(12).remainder(5).lt(2).view({4, 3});
  const at::Tensor pos_weight = at::tensor({1.0F, 3.0F, 0.5F}), ones = labels.to(at::kFloat);
  const at::Tensor losses =
      -(pos_weight * ones * scores.sigmoid().log() + (1 - ones) * (-scores).sigmoid().log());
  const LossKeys keys{{"kind", std::string("bce_with_logits")}, {"pos_weight", list_value({1.0, 3.0, 0.5})}};
  for (const at::ScalarType dtype : {at::kFloat, at::kLong, at::kByte})
    expect_loss(keys, scores, labels.to(dtype), losses.mean());
}

TEST(BertForSequences, HasAScoreForEachOfSeveralLabels) {
  const auto refused = [](const Shape& labels, at::ScalarType dtype, const char* loss) {
    const SampleSpec samples{
        {{"input_ids", {6}}, {"labels", labels}}, 0, {{"input_ids", at::kLong}, {"labels", dtype}}};
    const Setting section = section_with({{"kind", std::string("bert_classification")},
                                          {"num_classes", int64_t{3}},
                                          {"loss", std::string(loss)}});
    return message_of<UserError>([&] { BertClassificationOptions().make(section, samples); });
  };
  for (const char* loss : {"bce_with_logits", "focal", "mse", "l1"})
    for (const at::ScalarType dtype : {at::kLong, at::kFloat, at::kByte})
      EXPECT_THAT(refused({5}, dtype, loss),
                  HasSubstr("num_classes = 3: expected 5: the data has 5 targets a sample"))
          << loss << dtype;
}

TEST(BertForSequences, HasTorchsLossesOfValues) {
  const at::Tensor one = at::linspace(-2, 3, 4).view({4, 1}), several = at::linspace(-2, 3, 12).view({4, 3});
  for (const at::Tensor& outputs : {one, several}) {
    const at::Tensor values = outputs.mul(3).cos().mul(2).squeeze(1), wide = values.view_as(outputs);
    const at::Tensor apart = (outputs - wide).abs();
    expect_loss({{"kind", std::string("mse")}}, outputs, values, apart.square().mean());
    expect_loss({{"kind", std::string("l1")}}, outputs, values, apart.mean());
    expect_loss({{"kind", std::string("smooth_l1")}}, outputs, values,
                at::where(apart.lt(1), 0.5 * apart.square(), apart - 0.5).mean());
  }
}

TEST(BertForSequences, AreMeasuredByTheirLoss) {
  BertForSequenceClassification model(kSmallBert, 2, 0.0);
  choose_loss(model, section_with({{"kind", std::string("mse")}}));
  EXPECT_THAT(model.get_metrics(false), ElementsAre("MeanSquaredError"));
  EXPECT_THAT(model.get_metrics(true), ElementsAre());
  choose_loss(model, section_with({{"kind", std::string("bce_with_logits")}}));
  EXPECT_THAT(model.get_metrics(false), ElementsAre("MulticlassAccuracy", "BinaryF1Score"));
  model.set_labels(true);
  EXPECT_THAT(model.get_metrics(false), ElementsAre());
}

TEST(BertForMaskedLm, HasALossOfItsOwn) {
  BertForMaskedLm model(kSmallBert);
  EXPECT_THROW(choose_loss(model, section_with({{"kind", std::string("mse")}})), UserError);
}

}  // namespace
}  // namespace tutti
