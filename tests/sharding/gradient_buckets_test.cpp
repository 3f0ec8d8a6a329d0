#include "sharding/gradient_buckets.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

class Conv final : public Layer {
 public:
  Conv() : weight_(add_parameter("weight", {4, 3, 3, 3}, {})), unused_(add_parameter("unused", {5}, {})) {
    weight_.tensor = at::randn({4, 3, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
    unused_.tensor = at::randn({5});
    for (Parameter* p : {&weight_, &unused_}) p->tensor.set_requires_grad(true);
  }
  TensorTree forward(const TensorTree& input) override { return at::conv2d(input.tensor(), weight_.tensor); }
  const char* kind() const override { return "Conv"; }
  at::Tensor weight() const { return weight_.tensor; }

 private:
  Parameter& weight_;
  Parameter& unused_;
};

class GradientBucketsTest : public testing::Test {
 protected:
  void bind() {
    std::vector<at::Tensor> memory;
    for (const auto& bucket : buckets_.plan().buckets)
      memory.push_back(at::full({bucket.bytes}, 0x55, at::kByte));  // not zero: nobody may count on it
    buckets_.bind(memory);
  }
  void backward(const at::Tensor& input) { conv_.forward(input).tensor().square().sum().backward(); }
  at::Tensor reference(const at::Tensor& input) const {
    const at::Tensor weight = conv_.weight().detach().clone().set_requires_grad(true);
    at::conv2d(input, weight).square().sum().backward();
    return weight.grad();
  }

  Conv conv_;
  std::vector<int> full_;
  GradientBuckets buckets_{parameters(conv_), 64, [this](int bucket) { full_.push_back(bucket); }};
  at::Tensor first_ = at::randn({2, 3, 8, 8}), second_ = at::randn({2, 3, 8, 8});
};

TEST_F(GradientBucketsTest, ChannelsLastGradientHasItsParametersStrides) {
  bind();
  buckets_.begin_pass();
  buckets_.begin_portion(0, true);
  backward(first_);
  buckets_.end_pass();
  EXPECT_EQ(buckets_.gradients()[0].strides(), conv_.weight().strides());
  EXPECT_TRUE(at::allclose(buckets_.gradients()[0], reference(first_)));
}

TEST_F(GradientBucketsTest, MicrobatchesAdd) {
  bind();
  buckets_.begin_pass();
  backward(first_);
  EXPECT_TRUE(full_.empty()) << "reported before the last microbatch";
  buckets_.begin_portion(0, true);
  backward(second_);
  buckets_.end_pass();
  EXPECT_TRUE(at::allclose(buckets_.gradients()[0], reference(first_) + reference(second_), 1e-5, 1e-5));
}

class Pair final : public Layer {
 public:
  explicit Pair(const Shape& first) {
    for (const auto& [name, shape] : {std::pair<const char*, Shape>{"first", first}, {"second", {2}}})
      add_parameter(name, shape, {}).tensor = at::ones(shape).set_requires_grad(true);
  }
  TensorTree forward(const TensorTree& input) override { return input; }
  const char* kind() const override { return "Pair"; }
};

TEST(GradientBucketsOfPairs, WaitForAllGradientsIfAParameterIsEmpty) {
  Pair pair({0, 3});
  std::vector<int> full;
  GradientBuckets buckets(parameters(pair), 4096, [&](int bucket) { full.push_back(bucket); });
  buckets.bind({at::zeros({buckets.plan().buckets.at(0).bytes}, at::kByte)});
  buckets.begin_pass();
  buckets.begin_portion(0, true);
  pair.own_parameters()[0]->tensor.sum().backward();
  EXPECT_TRUE(full.empty()) << "the second has no gradient yet";
  pair.own_parameters()[1]->tensor.sum().backward();
  EXPECT_EQ(full.size(), 1);
  buckets.end_pass();
}

TEST_F(GradientBucketsTest, UnusedParameterCountsAsZero) {
  bind();
  for (int step = 0; step < 2; ++step) {
    buckets_.begin_pass();
    buckets_.begin_portion(0, true);
    backward(first_);
    buckets_.end_pass();
    EXPECT_TRUE(at::equal(buckets_.gradients()[1], at::zeros({5})));
    EXPECT_EQ(buckets_.unused(), 1);
    EXPECT_TRUE(buckets_.used().equal(at::tensor({1.0, 0.0}, at::kDouble)));
  }
}

TEST_F(GradientBucketsTest, FrozenParametersAreNotWaitedFor) {
  for (const auto& one : parameters(conv_))
    if (one.name == "unused") one.parameter->tensor.set_requires_grad(false);
  bind();
  buckets_.begin_pass();
  buckets_.begin_portion(0, true);
  backward(first_);
  buckets_.end_pass();
  EXPECT_EQ(buckets_.unused(), 0);
}

// A bucket of one alone that is not trained any more leaves with zeros before backward.
TEST_F(GradientBucketsTest, ANewlyFrozenParameterHasZerosAndDelaysNoBucket) {
  bind();
  parameters(conv_)[1].parameter->tensor.set_requires_grad(false);
  buckets_.begin_pass();
  EXPECT_TRUE(full_.empty());
  buckets_.begin_portion(0, true);
  EXPECT_EQ(full_, (std::vector<int>{0}));
  backward(first_);
  EXPECT_EQ(full_, (std::vector<int>{0, 1}));
  buckets_.end_pass();
  EXPECT_EQ(full_.size(), 2u);
  EXPECT_TRUE(at::equal(buckets_.gradients()[1], at::zeros({5})));
}

TEST_F(GradientBucketsTest, ParametersFrozenBetweenStepsAreNotReported) {
  bind();
  const auto all = buckets_.live_bytes();
  parameters(conv_)[1].parameter->tensor.set_requires_grad(false);
  buckets_.follow_frozen();
  EXPECT_EQ(buckets_.live_bytes(), (std::vector<int64_t>{0, all[1]}));
  EXPECT_TRUE(buckets_.parts()[0].empty());
  buckets_.begin_pass();
  buckets_.begin_portion(0, true);
  backward(first_);
  buckets_.end_pass();
  EXPECT_EQ(full_, (std::vector<int>{1}));
  buckets_.begin_pass();
  buckets_.abandon_pass();
  EXPECT_EQ(full_, (std::vector<int>{1, 1}));
  parameters(conv_)[1].parameter->tensor.set_requires_grad(true);
  buckets_.follow_frozen();
  EXPECT_EQ(buckets_.live_bytes(), all);
}

// The first parameters are the last ones of their bucket.
TEST_F(GradientBucketsTest, AFrozenEndOfABucketIsLeftOut) {
  GradientBuckets one(parameters(conv_), 1 << 20, [](int) {});
  parameters(conv_)[1].parameter->tensor.set_requires_grad(false);
  const auto all = one.live_bytes();
  one.follow_frozen();
  EXPECT_EQ(one.live_bytes(), all) << "the weight is behind";
  parameters(conv_)[1].parameter->tensor.set_requires_grad(true);
  parameters(conv_)[0].parameter->tensor.set_requires_grad(false);
  one.follow_frozen();
  EXPECT_EQ(one.live_bytes(), (std::vector<int64_t>{64})) << "5 numbers, on a cache line";
}

TEST_F(GradientBucketsTest, ABucketWithAFrozenParameterFillsDuringBackward) {
  full_.clear();
  GradientBuckets one(parameters(conv_), 1 << 20, [this](int bucket) { full_.push_back(bucket); });
  one.bind({at::full({one.plan().buckets.at(0).bytes}, 0x55, at::kByte)});
  parameters(conv_)[1].parameter->tensor.set_requires_grad(false);
  one.begin_pass();
  one.begin_portion(0, true);
  EXPECT_TRUE(full_.empty());
  backward(first_);
  EXPECT_EQ(full_, (std::vector<int>{0}));
  one.end_pass();
  EXPECT_EQ(full_.size(), 1u);
}

TEST_F(GradientBucketsTest, ANeverTrainedParameterHasNoPlace) {
  parameters(conv_)[0].parameter->tensor.set_requires_grad(false);
  GradientBuckets rest(parameters(conv_), 64, [](int) {});
  ASSERT_EQ(rest.plan().buckets.size(), 1u);
  EXPECT_EQ(rest.plan().buckets[0].slots.at(0).parameter, 1u);
  rest.bind({at::full({rest.plan().buckets[0].bytes}, 0x55, at::kByte)});
  rest.begin_pass();
  rest.begin_portion(0, true);
  rest.end_pass();
  EXPECT_FALSE(rest.gradients()[0].defined());
  EXPECT_TRUE(at::equal(rest.gradients()[1], at::zeros({5})));
  EXPECT_EQ(rest.unused(), 1);
  EXPECT_TRUE(rest.used().equal(at::zeros({2}, at::kDouble)));
}

TEST_F(GradientBucketsTest, EveryBucketIsReportedOnceAStep) {
  bind();
  buckets_.begin_pass();
  buckets_.begin_portion(0, true);
  backward(first_);
  EXPECT_EQ(full_, (std::vector<int>{1})) << "the used one leaves during backward";
  buckets_.end_pass();
  EXPECT_EQ(full_, (std::vector<int>{1, 0}));
}

TEST_F(GradientBucketsTest, StepWithoutABatchIsAllZeros) {
  bind();
  buckets_.begin_pass();
  buckets_.end_pass();
  for (const auto& gradient : buckets_.gradients()) EXPECT_EQ(gradient.abs().sum().item<float>(), 0.0f);
  EXPECT_EQ(full_.size(), 2u);
}

TEST_F(GradientBucketsTest, AbandonedStepReportsTheRestAndLeavesAloneWhatItHas) {
  bind();
  buckets_.begin_pass();
  buckets_.begin_portion(0, true);
  backward(first_);
  const at::Tensor reported = buckets_.gradients()[0].clone();
  buckets_.abandon_pass();
  EXPECT_EQ(full_, (std::vector<int>{1, 0}));
  EXPECT_TRUE(at::equal(buckets_.gradients()[0], reported));
  EXPECT_TRUE(at::equal(buckets_.gradients()[1], at::zeros({5})));
  EXPECT_FALSE(conv_.weight().grad().defined());
}

}  // namespace
}  // namespace tutti
