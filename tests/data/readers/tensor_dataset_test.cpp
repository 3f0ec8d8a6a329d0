#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/readers/synthetic_dataset.h"
#include "runtime/error.h"

namespace tutti {
namespace {

TensorTree::Children three_samples() {
  return {{"input", at::arange(6, at::kFloat).view({3, 2})}, {"target", at::arange(3, at::kLong)}};
}

TEST(TensorDatasetTest, YieldsTheRowsAskedFor) {
  const TensorDataset data(three_samples(), 3);
  EXPECT_EQ(data.size(), 3);
  const std::vector<int64_t> rows{2, 0, 2};
  const Batch batch = data.get(rows, {});
  EXPECT_TRUE(batch["input"].equal(at::tensor({4.0F, 5.0F, 0.0F, 1.0F, 4.0F, 5.0F}).view({3, 2})));
  EXPECT_TRUE(batch["target"].equal(at::tensor({2, 0, 2}, at::kLong)));
}

TEST(TensorDatasetTest, DescribesASample) {
  const SampleSpec spec = TensorDataset(three_samples(), 3).spec();
  EXPECT_EQ(spec.shapes.at("input"), Shape{2});
  EXPECT_EQ(spec.shapes.at("target"), Shape{});
  EXPECT_EQ(spec.dtypes.at("target"), at::kLong);
  EXPECT_EQ(spec.classes, 3);
}

TEST(TensorDatasetTest, DigestIsOfEveryValue) {
  const auto digest = [](const TensorTree::Children& tensors) { return TensorDataset(tensors).digest(); };
  EXPECT_EQ(digest(three_samples()), digest(three_samples()));
  auto other = three_samples();
  other[0].second.tensor()[2][1] = 7;
  EXPECT_NE(digest(other), digest(three_samples()));
}

TEST(TensorDatasetTest, TensorsOfUnlikeLengthAreRefused) {
  EXPECT_THAT(
      [] {
        TensorDataset({{{"a", at::zeros({3})}, {"b", at::zeros({2})}}});
      },
      testing::ThrowsMessage<UserError>("the tensor 'b' has 2 rows, and not 3"));
  EXPECT_THROW(TensorDataset(TensorTree(at::zeros({}))), UserError);
  EXPECT_THROW(TensorDataset{TensorTree()}, UserError);
}

}  // namespace
}  // namespace tutti
