#include "models/layers/norm.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/layers/statistics_rows.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

constexpr double kEps = 0.5;

// The formula, over the last dimension.
at::Tensor normalised(const at::Tensor& rows) {
  return (rows - rows.mean(-1, true)) / (rows.var(-1, /*unbiased=*/false, true) + kEps).sqrt();
}

bool close(const at::Tensor& got, const at::Tensor& want) { return at::allclose(got, want, 1e-4, 1e-5); }

void set_values(Parameter* parameter, const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  parameter->tensor.copy_(values);
}

// A norm that is being trained, and the statistics that it has found.
template <class Norm>
struct Training {
  explicit Training(const BatchNormOptions& options) : norm(options) {
    materialise(norm, 1);
    set_context(norm, &context);
  }
  const at::Tensor& mean() const { return norm.own_buffers()[0]->tensor; }
  const at::Tensor& variance() const { return norm.own_buffers()[1]->tensor; }
  int64_t tracked() const { return norm.own_buffers()[2]->tensor.template item<int64_t>(); }

  std::vector<RunningStatistics> found;
  ForwardContext context{.training = true, .statistics = &found};
  Norm norm;
};

TEST(BatchNorm2d, TrainingLeavesItsStatisticsAndTouchesNoBuffer) {
  Training<BatchNorm2d> training({.channels = 3});
  const at::Tensor x = at::randn({4, 3, 5, 5}) * 2 + 1;
  training.norm.forward(x);
  ASSERT_EQ(training.found.size(), 1U);
  EXPECT_TRUE(close(training.found[0].numbers.narrow(0, 0, 3), x.mean({0, 2, 3})));
  EXPECT_TRUE(close(training.found[0].numbers.narrow(0, 3, 3), x.var({0, 2, 3}, true)));
  EXPECT_TRUE(training.mean().equal(at::zeros({3})));
  EXPECT_TRUE(training.variance().equal(at::ones({3})));
}

// libtorch's kernel would read beyond the weights.
TEST(BatchNorm2d, RefusesInputsOfOtherChannels) {
  Training<BatchNorm2d> training({.channels = 2});
  EXPECT_THAT(message_of<UserError>([&] {
                training.norm.forward(at::ones({2, 4, 3, 3}));
              }),
              HasSubstr("the weight of a batch norm has 2 channels, and its input 4"));
}

TEST(BatchNorm2d, OfOneValueAChannelKeepsItsBuffers) {
  Training<BatchNorm2d> training({.channels = 2});
  training.norm.forward(at::ones({1, 2, 1, 1}));
  for (const auto& one : training.found) apply(one);
  EXPECT_TRUE(training.variance().equal(at::ones({2})));
  EXPECT_EQ(training.tracked(), 0);
}

TEST(BatchNorm3d, NormalisesChannelsOverAllElse) {
  Training<BatchNorm3d> training({.channels = 2, .eps = kEps});
  const at::Tensor x = at::randn({5, 2, 3, 4, 2});
  const auto rows = [](const at::Tensor& all) { return all.transpose(0, 1).flatten(1); };
  EXPECT_TRUE(close(rows(training.norm.forward(x).tensor()), normalised(rows(x))));
  apply(training.found.at(0));
  EXPECT_TRUE(close(training.mean(), 0.1 * rows(x).mean(1)));
  EXPECT_TRUE(close(training.variance(), 0.9 + 0.1 * rows(x).var(1)));
  EXPECT_EQ(training.tracked(), 1);
}

TEST(BatchNorm1d, WithoutAffineHasBuffersOnly) {
  Training<BatchNorm1d> training({.channels = 3, .eps = kEps, .affine = false});
  EXPECT_TRUE(parameters(training.norm).empty());
  EXPECT_EQ(training.norm.weight(), nullptr);
  const at::Tensor x = at::randn({6, 3});
  EXPECT_TRUE(close(training.norm.forward(x).tensor(), normalised(x.t()).t()));
  apply(training.found.at(0));
  const ForwardContext evaluating{.training = false};
  set_context(training.norm, &evaluating);
  const at::Tensor want = (x - training.mean()) / (training.variance() + kEps).sqrt();
  EXPECT_TRUE(close(training.norm.forward(x).tensor(), want));
}

// torch's updates, one call after the other.
TEST(BatchNorm2d, JoinedStatisticsHaveTheEffectOfAllCallsInTurn) {
  Training<BatchNorm2d> training({.channels = 2, .momentum = 0.3});
  at::Tensor mean = at::zeros({2}), variance = at::ones({2});
  for (const double momentum : {0.3, 0.1, 0.0, 0.5}) {
    training.norm.set_momentum(momentum);
    const at::Tensor x = at::randn({4, 2, 3, 3}) * 2 + 1;
    training.norm.forward(x);
    mean = (1 - momentum) * mean + momentum * x.mean({0, 2, 3});
    variance = (1 - momentum) * variance + momentum * x.var({0, 2, 3}, true);
  }
  RunningStatistics joined = training.found[0];
  for (std::size_t call = 1; call < training.found.size(); ++call)
    training.norm.join_statistics(joined, training.found[call]);
  joined.calls = 4;
  apply(joined);
  EXPECT_TRUE(close(training.mean(), mean));
  EXPECT_TRUE(close(training.variance(), variance));
  EXPECT_EQ(training.tracked(), 4);
}

TEST(BatchNorm2d, UpdatesByTheMomentumOfTheCall) {
  Training<BatchNorm2d> training({.channels = 1, .momentum = 0.8});
  training.norm.set_momentum(0.25);
  const at::Tensor x = at::randn({4, 1, 3, 3});
  training.norm.forward(x);
  training.norm.set_momentum(0.8);
  apply(training.found.at(0));
  EXPECT_TRUE(close(training.mean(), 0.25 * x.mean().view({1})));
}

TEST(LayerNorm, NormalisesSeveralDimensionsTogether) {
  LayerNorm norm(LayerNormOptions{.shape = {3, 4}, .eps = kEps});
  materialise(norm, 1);
  set_values(norm.weight(), at::randn({3, 4}));
  set_values(norm.bias(), at::randn({3, 4}));
  const at::Tensor x = at::randn({2, 5, 3, 4});
  const at::Tensor want = normalised(x.flatten(2)).view_as(x) * norm.weight()->tensor + norm.bias()->tensor;
  EXPECT_TRUE(close(norm.forward(x).tensor(), want));
}

TEST(LayerNorm, WithoutAffineHasNoParameters) {
  LayerNorm norm(LayerNormOptions{.shape = {4}, .eps = kEps, .affine = false});
  const at::Tensor x = at::randn({2, 4});
  EXPECT_TRUE(parameters(norm).empty());
  EXPECT_TRUE(close(norm.forward(x).tensor(), normalised(x)));
}

TEST(LayerNorm, WithoutBiasHasAWeight) {
  LayerNorm norm(LayerNormOptions{.shape = {4}, .bias = false});
  EXPECT_EQ(parameters(norm).size(), 1U);
  EXPECT_EQ(norm.bias(), nullptr);
}

TEST(GroupNorm, NormalisesGroupsOfChannelsOfEachSample) {
  GroupNorm norm({.groups = 3, .channels = 6, .eps = kEps});
  materialise(norm, 1);
  set_values(norm.weight(), at::randn({6}));
  set_values(norm.bias(), at::randn({6}));
  const at::Tensor x = at::randn({2, 6, 5, 4});
  const at::Tensor want = normalised(x.view({2, 3, -1})).view_as(x) * norm.weight()->tensor.view({6, 1, 1}) +
                          norm.bias()->tensor.view({6, 1, 1});
  EXPECT_TRUE(close(norm.forward(x).tensor(), want));
}

// libtorch's kernel would end the process.
TEST(GroupNorm, TrainsOnChannelsLastInputsWithoutGradient) {
  GroupNorm norm({.groups = 2, .channels = 4, .eps = kEps});
  materialise(norm, 1);
  const at::Tensor x = at::rand({3, 4, 5, 5});
  norm.forward(x.contiguous(at::MemoryFormat::ChannelsLast)).tensor().square().sum().backward();
  const at::Tensor gradient = norm.weight()->tensor.grad().clone();
  norm.weight()->tensor.mutable_grad().zero_();
  norm.forward(x).tensor().square().sum().backward();
  EXPECT_TRUE(at::allclose(norm.weight()->tensor.grad(), gradient));
}

TEST(GroupNorm, WithoutAffineHasNoParameters) {
  GroupNorm norm({.groups = 2, .channels = 4, .eps = kEps, .affine = false});
  const at::Tensor x = at::randn({3, 4, 5});
  EXPECT_TRUE(parameters(norm).empty());
  EXPECT_TRUE(close(norm.forward(x).tensor(), normalised(x.view({3, 2, 10})).view_as(x)));
}

}  // namespace
}  // namespace tutti
