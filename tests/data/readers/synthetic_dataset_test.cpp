#include "data/readers/synthetic_dataset.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

namespace tutti {
namespace {

std::vector<int64_t> first(int64_t count) {
  std::vector<int64_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

TEST(SyntheticDataset, InputsAreNormalAndLabelsSpread) {
  const SyntheticDataset data({.samples = 1000, .shape = {3, 8, 8}, .classes = 7, .seed = 5});
  const Batch batch = data.get(first(1000), {});
  const at::Tensor input = batch["input"], target = batch["target"];
  EXPECT_EQ(input.sizes(), (at::IntArrayRef{1000, 3, 8, 8}));
  EXPECT_NEAR(input.mean().item<double>(), 0, 0.02);
  EXPECT_NEAR(input.std().item<double>(), 1, 0.02);
  EXPECT_NEAR(input.abs().lt(1).to(at::kFloat).mean().item<double>(), 0.6827, 0.01);
  for (int64_t label = 0; label < 7; ++label)
    EXPECT_NEAR(target.eq(label).sum().item<double>(), 1000. / 7, 50);
}

TEST(SyntheticDataset, SampleIsAFunctionOfSeedAndIndex) {
  const SyntheticDataset::Options options = {.samples = 100, .shape = {16}, .seed = 5};
  const SyntheticDataset data(options), again(options);
  EXPECT_TRUE(at::equal(data.get(std::vector<int64_t>{3, 9}, {})["input"][1],
                        again.get(std::vector<int64_t>{9}, {})["input"][0]));
  EXPECT_EQ(data.digest(), again.digest());
  SyntheticDataset::Options other = options;
  other.seed = 6;
  EXPECT_FALSE(
      at::equal(data.get(first(1), {})["input"], SyntheticDataset(other).get(first(1), {})["input"]));
  EXPECT_NE(data.digest(), SyntheticDataset(other).digest());
}

TEST(SyntheticDataset, SamplesLargerThanTheTableAreWhole) {
  const SyntheticDataset data({.samples = 4, .shape = {700'000}});
  const at::Tensor input = data.get(first(2), {})["input"];
  EXPECT_NEAR(input.narrow(1, 690'000, 10'000).std().item<double>(), 1, 0.05);
}

TEST(SyntheticDataset, SequencesTargetTheNextToken) {
  using Targets = SyntheticDataset::Targets;
  const SyntheticDataset data({.samples = 50, .shape = {32}, .targets = Targets::kSequence, .classes = 256});
  const Batch batch = data.get(first(50), {});
  EXPECT_TRUE(at::equal(batch["input"].narrow(1, 1, 31), batch["target"].narrow(1, 0, 31)));
  EXPECT_EQ(batch["input"].scalar_type(), at::kLong);
  EXPECT_LT(batch["input"].max().item<int64_t>(), 256);
  EXPECT_GT(batch["input"].max().item<int64_t>(), 200);
  EXPECT_EQ(data.spec().classes, 256);
  EXPECT_EQ(data.spec().shapes.at("target"), Shape{32});
}

}  // namespace
}  // namespace tutti
