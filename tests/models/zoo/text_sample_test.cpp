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
  EXPECT_EQ(sample_text(ready_, "ab", options), sample_text(ready_, "ab", options));
  EXPECT_NE(sample_text(ready_, "ab", options), sample_text(ready_, "ab", {.length = 20, .seed = 4}));
}

TEST_F(TextSample, HasTheLengthAskedForBeyondTheWindow) {
  EXPECT_EQ(sample_text(ready_, "a prompt longer than the window", {.length = 30}).size(), 30U);
}

TEST_F(TextSample, WithoutTemperatureTakesTheLikeliestByte) {
  const std::string text = sample_text(ready_, "ab", {.length = 1, .temperature = 0.0});
  const Batch batch = TensorTree::Children{{"input", at::tensor({97, 98}, at::kLong).view({1, 2})}};
  const int64_t likeliest = ready_.forward(batch).tensor()[0][-1].argmax().item<int64_t>();
  EXPECT_EQ(static_cast<unsigned char>(text[0]), likeliest);
}

TEST_F(TextSample, LeavesTheModelInTraining) {
  sample_text(ready_, "ab", {.length = 1});
  EXPECT_TRUE(ready_.slots()[0]->layer().context().training);
}

TEST_F(TextSample, ClosesARunOfAModelOfBytesOnly) {
  EXPECT_EQ(closing_text(ready_, 3).size(), 400U);
  EXPECT_EQ(closing_text(ready_, 3), closing_text(ready_, 3));
  Gpt words({.vocab_size = 257, .n_positions = 8, .n_embd = 16, .n_layer = 1, .n_head = 2});
  EXPECT_EQ(closing_text(materialised(words), 3), "");
}

}  // namespace
}  // namespace tutti
