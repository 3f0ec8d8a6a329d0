#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/transforms/token_transforms.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

SampleSpec tokens_and(const std::string& array, const Shape& shape, at::ScalarType dtype = at::kLong) {
  return {{{"input", {5}}, {array, shape}}, 9, {{"input", at::kLong}, {array, dtype}}};
}

Batch transformed(Batch batch) {
  next_token_transform()->apply(batch, [](int64_t) { return random_draws(); });
  return batch;
}

TEST(NextToken, IsTheTargetAndIgnoredOnesStaySo) {
  const at::Tensor labels = at::tensor({3, 4, -100, 6, 7, -100, -100, 1, 2, 3}).view({2, 5});
  const Batch batch = transformed(TensorTree::Children{{"input", at::zeros({2, 5})}, {"target", labels}});
  EXPECT_TRUE(
      at::equal(batch["target"], at::tensor({4, -100, 6, 7, -100, -100, 1, 2, 3, -100}).view({2, 5})));
  EXPECT_EQ(labels[0][0].item<int64_t>(), 3) << "what is given stays";
}

TEST(NextToken, IsOfTheTokensWhereThereIsNoTarget) {
  const at::Tensor tokens = at::tensor({3, 4, 5}).view({1, 3});
  EXPECT_TRUE(at::equal(transformed(TensorTree::Children{{"input", tokens}})["target"],
                        at::tensor({4, 5, -100}).view({1, 3})));
  const SampleSpec alone{{{"input", {5}}}, 9, {{"input", at::kLong}}};
  EXPECT_EQ(next_token_transform()->spec(alone).describe("target"), "int64 [5]");
}

TEST(NextToken, NeedsATargetForEachOfSeveralTokens) {
  const auto why = [](const SampleSpec& samples) {
    return message_of<TransformError>([&] { next_token_transform()->spec(samples); });
  };
  EXPECT_EQ(next_token_transform()->spec(tokens_and("target", {5})).describe("target"), "int64 [5]");
  EXPECT_THAT(why(tokens_and("target", {})), HasSubstr("here 'target' is int64 number a sample"));
  EXPECT_THAT(why(tokens_and("target", {4})), HasSubstr("here 'target' is int64 [4] a sample"));
  EXPECT_THAT(why(tokens_and("target", {5}, at::kFloat)), HasSubstr("'target' is float32 [5]"));
  EXPECT_THAT(why({{{"input", {1}}}, 9, {{"input", at::kLong}}}), HasSubstr("expected two tokens or more"));
}

}  // namespace
}  // namespace tutti
