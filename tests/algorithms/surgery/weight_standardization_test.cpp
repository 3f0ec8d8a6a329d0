#include "algorithms/surgery/weight_standardization.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/readers/synthetic_dataset.h"
#include "models/layers/blocks.h"
#include "models/layers/conv.h"
#include "models/zoo/mlp.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(WeightStandardizationTest, EachOutputChannelHasMeanZeroAndVarianceOne) {
  const at::Tensor weight = at::tensor({1.0, 3.0, 5.0, 5.0}).view({2, 1, 2});
  EXPECT_TRUE(standardized(weight).allclose(at::tensor({-1.0, 1.0, 0.0, 0.0}).view({2, 1, 2})));
}

at::Tensor convolved_in_groups(const at::Tensor& volume, const at::Tensor& weight) {
  const std::vector<int64_t> one(3, 1), none(3, 0);
  return at::conv3d(volume, weight, {}, one, none, one, /*groups=*/2);
}

TEST(WeightStandardizationTest, WorksInThreeDimensions) {
  Conv3d conv({.in_channels = 2, .out_channels = 4, .kernel_size = {2, 1, 3}, .groups = 2, .bias = true});
  materialise(conv, 1);
  const at::Tensor raw = conv.weight().tensor.detach().clone(), volume = at::randn({2, 2, 4, 3, 5});
  Sequential net({std::make_shared<Conv3d>(conv.options())});
  EXPECT_EQ(apply_weight_standardization(net), 1);
  materialise(net, 1);
  const auto all = parameters(net);
  const at::NoGradGuard no_grad;
  all[0].parameter->tensor.copy_(raw);
  all[1].parameter->tensor.zero_();
  const at::Tensor flat = raw.flatten(1);
  const at::Tensor want = ((flat - flat.mean(1, true)) / flat.std(1, /*unbiased=*/false, true)).view_as(raw);
  EXPECT_TRUE(at::allclose(net.forward(volume).tensor(), convolved_in_groups(volume, want), 1e-3, 1e-4));
}

// A user's own model, in which the layer that is registered first is called last.
class Backwards final : public Model {
 public:
  explicit Backwards(bool runs = true)
      : last_(add_slot("last", convolution())), first_(add_slot("first", convolution())), runs_(runs) {}
  TensorTree forward(const Batch& batch) override {
    if (!runs_) throw std::runtime_error("not today");
    return last_(first_(batch["input"]));
  }
  at::Tensor loss(const Outputs& outputs, const Batch&) override { return outputs.tensor().mean(); }
  const char* kind() const override { return "Backwards"; }

 private:
  static std::shared_ptr<Layer> convolution() {
    return std::make_shared<Conv2d>(Conv2dOptions{.in_channels = 2, .out_channels = 2});
  }
  Slot& last_;
  Slot& first_;
  bool runs_;
};

std::vector<std::string> standardized_in(Layer& model) {
  std::vector<std::string> names;
  for (const auto& [name, layer] : layers(model))
    if (const auto* conv = dynamic_cast<const Convolution*>(layer); conv && conv->weight_rule())
      names.push_back(name);
  return names;
}

const Batch kExample = TensorTree::Children{{"input", at::ones({1, 2, 3, 3})}};

TEST(WeightStandardizationTest, TheLastLayersAreThoseThatAreCalledLast) {
  Backwards registered, called, live;
  EXPECT_EQ(apply_weight_standardization(registered, 1), 1);
  EXPECT_THAT(standardized_in(registered), ElementsAre("last"));
  EXPECT_EQ(apply_weight_standardization(called, 1, kExample), 1);
  EXPECT_THAT(standardized_in(called), ElementsAre("first"));
  for (const auto& one : parameters(called))
    EXPECT_TRUE(one.parameter->tensor.is_meta()) << "the example leaves the model without memory";
  materialise(live, 1);
  const at::Tensor before = parameters(live)[0].parameter->tensor;
  EXPECT_EQ(apply_weight_standardization(live, 1, kExample), 1);
  EXPECT_THAT(standardized_in(live), ElementsAre("first"));
  EXPECT_TRUE(parameters(live)[0].parameter->tensor.is_same(before));
}

struct Initialised {
  explicit Initialised(bool runs) : data({.samples = 4, .shape = {2, 3, 3}}) {
    state.model = std::make_shared<Backwards>(runs);
    state.dataset = &data;
    state.services->on_warning = [this](const std::string& what) { warned.push_back(what); };
    Logger logger;
    WeightStandardization(1).apply(Event::kInit, state, logger);
  }
  SyntheticDataset data;
  State state;
  std::vector<std::string> warned;
};

TEST(WeightStandardizationTest, ARunTriesItsDataToFindOut) {
  Initialised run(/*runs=*/true);
  EXPECT_THAT(standardized_in(*run.state.model), ElementsAre("first"));
  EXPECT_TRUE(run.warned.empty());
}

TEST(WeightStandardizationTest, AModelThatCannotBeTriedIsAWarning) {
  Initialised run(/*runs=*/false);
  EXPECT_THAT(standardized_in(*run.state.model), ElementsAre("last"));
  EXPECT_THAT(run.warned, ElementsAre(HasSubstr("Backwards could not be run: not today")));
}

// A user's own convolution, of single pixels.
class OwnConvolution final : public Convolution {
 public:
  OwnConvolution() : Convolution({3, 2}, /*bias=*/false) {}
  TensorTree forward(const TensorTree& input) override { return at::linear(input.tensor(), kernel()); }
  const char* kind() const override { return "OwnConvolution"; }
};

TEST(WeightStandardizationTest, AConvolutionOfAUsersOwnTakesPart) {
  Sequential net({std::make_shared<OwnConvolution>()});
  EXPECT_EQ(apply_weight_standardization(net), 1);
  materialise(net, 1);
  const at::Tensor& weight = parameters(net)[0].parameter->tensor;
  EXPECT_TRUE(net.forward(at::eye(2)).tensor().t().allclose(standardized(weight), 1e-4, 1e-5));
}

TEST(WeightStandardizationTest, MoreIgnoredLayersThanThereAreLeaveAll) {
  Backwards model;
  EXPECT_EQ(apply_weight_standardization(model, 3), 0);
  EXPECT_THAT(standardized_in(model), ElementsAre());
}

}  // namespace
}  // namespace tutti
