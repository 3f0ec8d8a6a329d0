#include "data/balance/drawn_samples.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "data/readers/synthetic_dataset.h"
#include "data/readers/transformed_dataset.h"
#include "tensors/draws.h"

namespace tutti {
namespace {

DatasetPtr numbered(int64_t count) {
  const at::Tensor numbers = at::arange(count);
  return std::make_shared<const TensorDataset>(
      TensorTree::Children{{"input", numbers.to(at::kFloat)}, {"target", numbers % 2}}, 2);
}

std::map<int64_t, int64_t> draws_of_epochs(const Dataset& data, int64_t epochs) {
  std::map<int64_t, int64_t> counts;
  for (int64_t epoch = 0; epoch < epochs; ++epoch)
    for (int64_t i = 0; i < data.size(); ++i) ++counts[data.order(3, epoch, i, /*shuffle=*/true)];
  return counts;
}

TEST(DrawnSamples, SamplesComeByTheirWeights) {
  const DrawnSamples data(numbered(4), {1, 0, 3, 6}, /*varies=*/false);
  auto counts = draws_of_epochs(data, 5000);
  EXPECT_EQ(counts[1], 0);
  EXPECT_NEAR(counts[0], 2000, 200);
  EXPECT_NEAR(counts[2], 6000, 300);
  EXPECT_NEAR(counts[3], 12000, 300);
}

TEST(DrawnSamples, DrawIsAFunctionOfSeedEpochAndPosition) {
  const DrawnSamples first(numbered(50), std::vector<double>(50, 1), false),
      second(numbered(50), std::vector<double>(50, 1), false);
  int64_t other_epoch = 0, other_seed = 0;
  for (const int64_t position : {49, 0, 17, 3}) {
    const int64_t drawn = first.order(1, 2, position, true);
    EXPECT_EQ(drawn, second.order(1, 2, position, false));
    other_epoch += drawn != first.order(1, 3, position, true);
    other_seed += drawn != first.order(2, 2, position, true);
  }
  EXPECT_GT(other_epoch, 0);
  EXPECT_GT(other_seed, 0);
}

// Adds a drawn number.
class DrawnNumber final : public Transform {
 public:
  SampleSpec spec(const SampleSpec& before) const override { return before; }
  void apply(Batch& batch, const RowDraws& draws) const override {
    at::Tensor input = batch["input"].clone();
    for (int64_t row = 0; row < input.size(0); ++row) input[row] = draws(row)->uniform(0, 1);
    batch.set("input", input);
  }
};

// The only sample that has a weight comes three times in an epoch.
TEST(DrawnSamples, TransformsDrawAnewEachTimeThatASampleComes) {
  const DatasetPtr plain =
      std::make_shared<const DrawnSamples>(numbered(3), std::vector<double>{0, 1, 0}, false);
  const DatasetPtr data = plain->with({{"drawn", std::make_shared<const DrawnNumber>()}});
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < 3; ++i) indices.push_back(data->order(1, 0, i, true));
  const Batch batch = data->get(indices, {1, 0});
  EXPECT_TRUE(at::equal(batch["target"], at::ones(3, at::kLong)));
  EXPECT_NE(batch["input"][0].item<float>(), batch["input"][1].item<float>());
  EXPECT_NE(batch["input"][1].item<float>(), batch["input"][2].item<float>());
  EXPECT_TRUE(at::equal(batch["input"].narrow(0, 1, 1), data->get({&indices[1], 1}, {1, 0})["input"]));
}

}  // namespace
}  // namespace tutti
