#include "models/zoo/bert_contrastive.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/step_rows.h"
#include "models/zoo/catalog.h"
#include "models/zoo/factory.h"
#include "runtime/error.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

BertContrastiveOptions small() {
  BertContrastiveOptions options;
  options.vocab_size = 19;
  options.hidden_size = 8;
  options.num_hidden_layers = 2;
  options.num_attention_heads = 2;
  options.intermediate_size = 12;
  options.max_position_embeddings = 10;
  return options;
}

at::Tensor some_texts(int64_t first) {
  return at::arange(first, first + 12, at::kLong).remainder(19).view({3, 4});
}

Batch pairs() { return TensorTree::Children{{"input_ids", some_texts(0)}, {"positive_ids", some_texts(5)}}; }

at::Tensor embeddings(BertForContrast& model, const Batch& batch) {
  const EvaluationMode evaluating(model);
  return model.forward(batch).tensor().detach();
}

// Of the states that the encoder gives for a text alone.
at::Tensor unit(const at::Tensor& pooled) { return pooled / pooled.norm(2, -1, true); }

TEST(BertForContrast, EmbedsEachTextAsIfItWereAlone) {
  BertForContrast model(small());
  materialise(model, 1);
  const at::Tensor both = embeddings(model, pairs());
  ASSERT_EQ(both.sizes(), (Shape{3, 2, 8}));
  const at::Tensor alone = embeddings(model, TensorTree::Children{{"input_ids", some_texts(5)}});
  ASSERT_EQ(alone.sizes(), (Shape{3, 8}));
  EXPECT_TRUE(at::allclose(both.select(1, 1), alone, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(alone.norm(2, -1), at::ones({3})));
}

TEST(BertForContrast, PoolsTheMeanOfATextOrItsFirstToken) {
  auto options = small();
  const auto trunk = bert_trunk(options, false);
  BertForContrast mean(options);
  options.pooling = BertPooling::kCls;
  BertForContrast cls(options);
  materialise(mean, 1);
  materialise(cls, 1);
  struct Alone : Layer {
    explicit Alone(std::shared_ptr<Layer> trunk) : bert(add_slot("bert", std::move(trunk))) {}
    TensorTree forward(const TensorTree& batch) override { return bert(batch); }
    const char* kind() const override { return "Alone"; }
    Slot& bert;
  } encoder(trunk);
  materialise(encoder, 1);
  const EvaluationMode evaluating(encoder);
  const Batch batch = TensorTree::Children{{"input_ids", some_texts(0)}};
  const at::Tensor states = encoder.forward(batch).tensor();
  EXPECT_TRUE(at::allclose(embeddings(mean, batch), unit(states.mean(1)), 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(embeddings(cls, batch), unit(states.select(1, 0)), 1e-5, 1e-6));
}

TEST(BertForContrast, PaddingChangesNothing) {
  BertForContrast model(small());
  materialise(model, 1);
  Batch padded = pairs();
  padded.set("positive_ids", at::constant_pad_nd(some_texts(5), {0, 3}, 7));
  padded.set("positive_attention_mask", at::constant_pad_nd(at::ones({3, 4}, at::kLong), {0, 3}));
  EXPECT_TRUE(at::allclose(embeddings(model, padded), embeddings(model, pairs()), 1e-5, 1e-6));
}

TEST(BertForContrast, EachTextHasItsOwnPadding) {
  BertForContrast model(small());
  materialise(model, 1);
  Batch three = pairs(), padded = pairs();
  three.set("negative_ids", some_texts(9));
  padded.set("negative_ids", at::constant_pad_nd(some_texts(9), {0, 2}, 7));
  padded.set("negative_attention_mask", at::constant_pad_nd(at::ones({3, 4}, at::kLong), {0, 2}));
  EXPECT_TRUE(at::allclose(embeddings(model, padded), embeddings(model, three), 1e-5, 1e-6));
}

TEST(BertForContrast, OfSimcseEncodesATextOnceInEvaluations) {
  auto options = small();
  options.simcse = true;
  BertForContrast model(options);
  materialise(model, 1);
  EXPECT_EQ(embeddings(model, TensorTree::Children{{"input_ids", some_texts(0)}}).sizes(), (Shape{3, 8}));
}

TEST(BertForContrast, FindsTextsAmongPositivesAndNegatives) {
  auto options = small();
  options.temperature = 0.5;
  BertForContrast model(options);
  const at::Tensor rows = at::linspace(-1, 2, 2 * 3 * 8).sin().view({2, 3, 8});
  const auto near = [&](int64_t text, int64_t sample, int64_t other) {
    return std::exp(2.0 * rows[text][0].dot(rows[sample][other]).item<double>());
  };
  double wanted = 0;
  for (int64_t text = 0; text < 2; ++text) {
    const double all = near(text, 0, 1) + near(text, 1, 1) + near(text, 0, 2) + near(text, 1, 2);
    wanted -= std::log(near(text, text, 1) / all) / 2;
  }
  EXPECT_NEAR(model.loss(rows, {}).item<double>(), wanted, 1e-5);
}

TEST(BertForContrast, SymmetricallyFindsPositivesToo) {
  auto options = small();
  BertForContrast forward(options);
  options.symmetric = true;
  BertForContrast both(options);
  const at::Tensor rows = at::linspace(-1, 2, 3 * 2 * 8).sin().view({3, 2, 8});
  const double wanted =
      (forward.loss(rows, {}).item<double>() + forward.loss(rows.flip(1), {}).item<double>()) / 2;
  EXPECT_NEAR(both.loss(rows, {}).item<double>(), wanted, 1e-5);
}

TEST(StepRows, OfABatchAreLiveAndOthersAreNot) {
  const at::Tensor all = at::arange(10, at::kFloat).view({5, 2}),
                   mine = at::full({2, 2}, 9.0).requires_grad_();
  const Batch batch = with_step_rows(TensorTree::Children{{"input_ids", at::zeros({2, 1})}}, all, 1);
  EXPECT_EQ(batch.samples(), 2);
  const at::Tensor rows = rows_of_step(batch, mine);
  EXPECT_TRUE(rows.narrow(0, 1, 2).equal(mine));
  EXPECT_TRUE(rows.narrow(0, 3, 2).equal(all.narrow(0, 3, 2)));
  rows.sum().backward();
  EXPECT_TRUE(mine.grad().equal(at::ones({2, 2})));
  EXPECT_TRUE(rows_of_step({}, mine).is_same(mine));
}

std::string refused(bool simcse, const SampleSpec& samples) {
  Setting section = smallest_section(model_catalog(), "bert_contrastive");
  section.find("simcse")->value = simcse;
  return message_of<UserError>([&] { make_model(section, samples); });
}

TEST(BertForContrast, SaysWhatTheDataLack) {
  const SampleSpec texts{.shapes = {{"input_ids", {6}}}};
  const SampleSpec some{
      .shapes = {{"input_ids", {6}}, {"positive_ids", {4}}, {"positive_attention_mask", {6}}}};
  EXPECT_THAT(refused(false, texts), testing::HasSubstr("the data has no array 'positive_ids'"));
  EXPECT_THAT(refused(false, some), testing::HasSubstr("'positive_attention_mask' as [4]"));
  EXPECT_THAT(refused(true, some), testing::HasSubstr("simcse"));
}

}  // namespace
}  // namespace tutti
