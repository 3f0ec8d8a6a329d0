#include "algorithms/surgery/no_op_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/zoo/gpt.h"
#include "training/state.h"

namespace tutti {
namespace {

std::shared_ptr<Model> small_gpt() {
  return std::make_shared<Gpt>(
      GptOptions{.vocab_size = 8, .n_positions = 4, .n_embd = 8, .n_layer = 1, .n_head = 1});
}

at::Tensor outputs_of(const Batch& batch) {
  NoOpModelClass model(small_gpt());
  materialise(model, 1);
  return model.forward(batch).tensor();
}

TEST(NoOpModelTest, ActsAtInitAlone) {
  for (std::size_t e = 0; e < kEvents; ++e) {
    const auto event = static_cast<Event>(e);
    EXPECT_EQ(NoOpModel().match(event, State()), event == Event::kInit) << name(event);
  }
}

TEST(NoOpModelTest, FindsTheTargetsOfEveryModel) {
  const at::Tensor x = at::zeros({2}), y = at::tensor({2.0, 4.0}), wanted = at::tensor({3.0, 6.0});
  EXPECT_TRUE(outputs_of(TensorTree::Children{{"target", y}, {"input", x}}).allclose(wanted));
  EXPECT_TRUE(outputs_of(TensorTree::Children{{"labels", y}, {"input_ids", x}}).allclose(wanted));
  EXPECT_TRUE(outputs_of(TensorTree::Children{{"image", x}, {"mask", y}}).allclose(wanted));
}

TEST(NoOpModelTest, TokensAreCountedStill) {
  const Batch batch =
      TensorTree::Children{{"input", at::ones({2, 4}, at::kLong)}, {"target", at::ones({2, 4}, at::kLong)}};
  const auto gpt = small_gpt();
  EXPECT_GT(gpt->tokens(batch), 0);
  EXPECT_EQ(NoOpModelClass(gpt).tokens(batch), gpt->tokens(batch));
}

TEST(NoOpModelTest, TheLossIsTheMeanOfTheSamples) {
  NoOpModelClass model(small_gpt());
  materialise(model, 1);
  const Batch batch = TensorTree::Children{{"target", at::tensor({1, 2, 3, 4}, at::kLong).view({2, 2})}};
  const Outputs outputs = model.forward(batch);
  const at::Tensor losses = model.losses(outputs, batch);
  EXPECT_TRUE(losses.allclose(at::tensor({0.625, 3.125}, at::kFloat)));  // a quarter of 1 and 4, of 9 and 16
  EXPECT_TRUE(model.loss(outputs, batch).allclose(losses.mean()));
}

TEST(NoOpModelTest, TakesThePlaceOfTheModel) {
  State state;
  state.model = small_gpt();
  Logger logger;
  NoOpModel().apply(Event::kInit, state, logger);
  EXPECT_STREQ(state.model->kind(), "NoOpModelClass");
  ASSERT_EQ(parameters(*state.model).size(), 1U);
  EXPECT_EQ(parameters(*state.model)[0].name, "weights");
}

}  // namespace
}  // namespace tutti
