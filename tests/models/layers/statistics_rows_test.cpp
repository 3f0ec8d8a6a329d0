#include "models/layers/statistics_rows.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "models/layers/buffer_updates.h"
#include "models/layers/norm.h"

namespace tutti {
namespace {

using Layers = std::vector<std::shared_ptr<Layer>>;

// Counts in numbers of its own: the largest value so far, and all that it was given.
class Largest final : public Layer {
 public:
  explicit Largest(bool joins = true)
      : joins_(joins),
        seen_(add_buffer("seen", {2}, [](at::Tensor& tensor, const at::Generator&) { tensor.zero_(); })) {}
  TensorTree forward(const TensorTree& input) override {
    const at::Tensor x = input.tensor();
    if (context().statistics) context().statistics->push_back({this, at::stack({x.max(), x.sum()})});
    return x;
  }
  const char* kind() const override { return "Largest"; }
  int64_t statistics_size() const override { return 2; }
  void join_statistics(RunningStatistics& so_far, const RunningStatistics& next) const override {
    if (!joins_) return Layer::join_statistics(so_far, next);
    so_far.numbers[0].copy_(at::max(so_far.numbers[0], next.numbers[0]));
    so_far.numbers[1].add_(next.numbers[1]);
  }
  void apply_statistics(const RunningStatistics& found, BufferUpdates&) override {
    history += std::to_string(found.calls) + " ";
    seen_.tensor[0].copy_(at::max(seen_.tensor[0], found.numbers[0]));
    seen_.tensor[1].add_(found.numbers[1]);
  }
  const at::Tensor& seen() const { return seen_.tensor; }
  std::string history;  // calls of each update

 private:
  bool joins_;
  Buffer& seen_;
};

class StatisticsRowsTest : public testing::Test {
 protected:
  StatisticsRowsTest() {
    materialise(*model_, 1);
    set_context(*model_, &context_);
  }
  at::Tensor zeros(int64_t count) const { return at::zeros({count * rows_.size()}); }
  void pass(const at::Tensor& x, const at::Tensor& rows, int64_t index) {
    model_->forward(x);
    rows_.add(found_, rows, index);
    found_.clear();
  }

  std::shared_ptr<Largest> largest_ = std::make_shared<Largest>();
  std::shared_ptr<BatchNorm1d> norm_ = std::make_shared<BatchNorm1d>(3);
  std::shared_ptr<Sequential> model_ = std::make_shared<Sequential>(Layers{norm_, largest_, norm_});
  std::vector<RunningStatistics> found_;
  ForwardContext context_{.training = true, .statistics = &found_};
  StatisticsRows rows_{*model_};
};

TEST_F(StatisticsRowsTest, EachLayerHasPlaceForItsOwnNumbers) {
  EXPECT_EQ(rows_.size(), (1 + 7) + (1 + 2));
  Sequential none(Layers{});
  EXPECT_EQ(StatisticsRows(none).size(), 0);
}

// The layer stands in two slots. torch updates its buffers at once, so the formula is that of four updates.
TEST_F(StatisticsRowsTest, ALayerThatIsCalledTwiceLosesNothing) {
  const at::Tensor rows = zeros(2);
  at::Tensor mean = at::zeros({3}), variance = at::ones({3});
  const auto update = [&](const at::Tensor& x) {
    mean = 0.9 * mean + 0.1 * x.mean(0);
    variance = 0.9 * variance + 0.1 * x.var(0, true);
  };
  for (int64_t index = 0; index < 2; ++index) {
    const at::Tensor x = at::randn({5, 3}) * 3 + 1;
    pass(x, rows, index);
    update(x);
    update((x - x.mean(0)) / (x.var(0, false) + 1e-5).sqrt());
  }
  rows_.apply(rows);
  EXPECT_TRUE(at::allclose(norm_->own_buffers()[0]->tensor, mean, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(norm_->own_buffers()[1]->tensor, variance, 1e-4, 1e-5));
  EXPECT_EQ(norm_->own_buffers()[2]->tensor.item<int64_t>(), 4);
}

TEST_F(StatisticsRowsTest, RowsAreAppliedInOrderAndEmptyOnesLeftOut) {
  const at::Tensor rows = zeros(3);
  pass(at::randn({5, 3}), rows, 0);
  pass(at::randn({5, 3}), rows, 2);
  pass(at::randn({5, 3}), rows, 2);
  EXPECT_FALSE(rows.requires_grad());  // of what Largest found
  rows_.apply(rows.view({3, -1}));
  EXPECT_EQ(largest_->history, "1 2 ");
}

TEST_F(StatisticsRowsTest, ALayersOwnNumbersReachIt) {
  const at::Tensor rows = zeros(1), first = at::randn({5, 3}), second = at::randn({5, 3}) + 1;
  for (const at::Tensor& x : {first, second}) {
    largest_->forward(x);
    rows_.add(found_, rows, 0);
    found_.clear();
  }
  rows_.apply(rows);
  EXPECT_TRUE(largest_->seen()[0].equal(at::max(first.max(), second.max())));
  EXPECT_TRUE(at::allclose(largest_->seen()[1], first.sum() + second.sum(), 1e-4, 1e-5));
}

TEST_F(StatisticsRowsTest, LayersRemovedBySurgeryAreNotTouched) {
  const at::Tensor rows = zeros(1);
  pass(at::randn({5, 3}), rows, 0);
  const std::weak_ptr<Largest> thrown_away = largest_;
  model_->slots()[1]->fill(std::make_shared<Sequential>(Layers{}));
  largest_.reset();
  EXPECT_FALSE(thrown_away.expired());
  rows_.apply(rows);
  EXPECT_EQ(thrown_away.lock()->history, "1 ");
}

TEST_F(StatisticsRowsTest, NumbersThatHaveNoPlaceAreAnError) {
  Largest late, alone(/*joins=*/false);
  const at::Tensor numbers = at::zeros({2});
  EXPECT_DEATH(rows_.add({{&late, numbers}}, zeros(1), 0),
               "Largest found running statistics, but was not in");
  EXPECT_DEATH(rows_.add({{largest_.get(), at::zeros({3})}}, zeros(1), 0),
               "Largest found 3 running statistics, but its statistics_size is 2");
  const StatisticsRows rows(alone);
  EXPECT_DEATH(rows.add({{&alone, numbers}, {&alone, numbers}}, at::zeros({3}), 0),
               "Largest is called more than once in a microbatch");
}

TEST(BufferUpdatesTest, NumbersTakeTheShapeOfTheBuffer) {
  const at::Tensor buffer = at::ones({2, 2}), count = at::zeros({}, at::kLong);
  const at::Tensor numbers = at::arange(6, at::kFloat);
  BufferUpdates updates(numbers, numbers);
  updates.average(buffer, numbers.narrow(0, 1, 5), 1, 0.25);
  updates.add(count, 3);
  EXPECT_TRUE(buffer.equal(at::tensor({1.25, 1.5, 1.75, 2.0}, at::kFloat).view({2, 2})));
  EXPECT_EQ(count.item<int64_t>(), 3);
}

}  // namespace
}  // namespace tutti
