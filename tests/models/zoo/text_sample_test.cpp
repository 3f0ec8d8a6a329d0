#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/zoo/gpt.h"

namespace tutti {
namespace {

Gpt& materialised(Gpt& model) {
  materialise(model, 5);
  return model;
}

class TextSample : public testing::Test {
 protected:
  Gpt model_{{.vocab_size = 256, .n_positions = 8, .n_embd = 16, .n_layer = 1, .n_head = 2}};
  Gpt& ready_ = materialised(model_);
};

TEST_F(TextSample, SameSeedGivesTheSameText) {
  const TextSampleOptions options{.length = 20, .seed = 3};
  EXPECT_EQ(sample_text(ready_, *bytes_as_text(), "ab", options),
            sample_text(ready_, *bytes_as_text(), "ab", options));
  EXPECT_NE(sample_text(ready_, *bytes_as_text(), "ab", options),
            sample_text(ready_, *bytes_as_text(), "ab", {.length = 20, .seed = 4}));
}

TEST_F(TextSample, HasTheLengthAskedForBeyondTheWindow) {
  EXPECT_EQ(sample_text(ready_, *bytes_as_text(), "a prompt longer than the window", {.length = 30}).size(),
            30U);
}

TEST_F(TextSample, WithoutTemperatureTakesTheLikeliestByte) {
  const std::string text = sample_text(ready_, *bytes_as_text(), "ab", {.length = 1, .temperature = 0.0});
  const Batch batch = TensorTree::Children{{"input", at::tensor({97, 98}, at::kLong).view({1, 2})}};
  const int64_t likeliest = ready_.forward(batch).tensor()[0][-1].argmax().item<int64_t>();
  EXPECT_EQ(static_cast<unsigned char>(text[0]), likeliest);
}

TEST_F(TextSample, LeavesTheModelInTraining) {
  sample_text(ready_, *bytes_as_text(), "ab", {.length = 1});
  EXPECT_TRUE(ready_.slots()[0]->layer().context().training);
}

TEST_F(TextSample, ClosesARun) {
  EXPECT_EQ(closing_text(ready_, *bytes_as_text(), 3).size(), 400U);
  EXPECT_EQ(closing_text(ready_, *bytes_as_text(), 3), closing_text(ready_, *bytes_as_text(), 3));
}

// Of batches that have documents of 3, 2 and 4 tokens in two rows, and of one document a row.
TEST_F(TextSample, DocumentsInARowDoNotSeeEachOther) {
  const at::Tensor tokens = at::tensor({5, 6, 7, 8, 9, 1, 2, 3, 4, 0}, at::kLong).view({2, 5});
  const Batch packed =
      TensorTree::Children{{"input", tokens},
                           {"segments", at::tensor({1, 1, 1, 2, 2, 1, 1, 1, 1, 0}, at::kLong).view({2, 5})},
                           {"positions", at::tensor({0, 1, 2, 0, 1, 0, 1, 2, 3, 0}, at::kLong).view({2, 5})}};
  const at::Tensor together = ready_.forward(packed).tensor();
  const auto alone = [&](int64_t row, int64_t first, int64_t length) {
    return ready_.forward(TensorTree::Children{{"input", tokens.narrow(0, row, 1).narrow(1, first, length)}})
        .tensor()[0];
  };
  EXPECT_TRUE(at::allclose(together[0].narrow(0, 0, 3), alone(0, 0, 3), 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(together[0].narrow(0, 3, 2), alone(0, 3, 2), 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(together[1].narrow(0, 0, 4), alone(1, 0, 4), 1e-5, 1e-6));
  EXPECT_FALSE(at::allclose(together[0].narrow(0, 3, 2), alone(0, 0, 5).narrow(0, 3, 2), 1e-3, 1e-3));
}

}  // namespace
}  // namespace tutti
