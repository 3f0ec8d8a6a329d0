#include "algorithms/surgery/factorize.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "algorithms/surgery/blurpool.h"
#include "algorithms/surgery/weight_standardization.h"
#include "models/layers/blocks.h"
#include "models/layers/linear.h"
#include "models/zoo/mlp.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

std::shared_ptr<Model> wide_net() {
  return std::make_shared<SequentialNet>(std::vector<std::string>{
      "Conv2d(16, 32, kernel_size=(3, 1), stride=(2, 1), padding=(1, 0), dilation=(1, 2))",
      "Conv2d(32, 32, kernel_size=3, groups=2)", "AdaptiveAvgPool2d(output_size=1)", "Flatten()",
      "Linear(32, 20)", "Linear(20, 3)"});
}

std::map<std::string, at::Tensor> named_values(Layer& model) {
  std::map<std::string, at::Tensor> named;
  for (const auto& one : parameters(model)) named[one.name] = one.parameter->tensor.detach();
  return named;
}

constexpr FactorizeOptions kNarrow{.min_channels = 16, .min_features = 4, .latent_features = 5};

TEST(FactorizeTest, ActsAtInit) {
  for (std::size_t e = 0; e < kEvents; ++e)
    EXPECT_EQ(Factorize().match(static_cast<Event>(e), State()), static_cast<Event>(e) == Event::kInit);
  EXPECT_TRUE(Factorize().needs().required_on_load);
}

TEST(FactorizeTest, ALayerKeepsWhatItTakesAndGives) {
  const auto plain = wide_net(), small = wide_net();
  const Factorized done = apply_factorization(*small, kNarrow);
  EXPECT_EQ(done.convs, 1) << "one has two groups";
  EXPECT_EQ(done.linears, 1) << "one is too narrow";
  materialise(*plain, 1);
  materialise(*small, 1);
  const Batch batch = TensorTree::Children{{"input", at::randn({2, 16, 9, 9})}};
  EXPECT_EQ(small->forward(batch).tensor().sizes(), plain->forward(batch).tensor().sizes());
  const auto names = named_values(*small);
  EXPECT_EQ(names.at("0.module0.weight").sizes(), at::IntArrayRef({4, 16, 3, 1}));
  EXPECT_EQ(names.at("0.module1.weight").sizes(), at::IntArrayRef({32, 4, 1, 1}));
  EXPECT_EQ(names.at("4.module0.weight").sizes(), at::IntArrayRef({5, 32}));
  EXPECT_EQ(names.count("4.module0.bias"), 0U);
  for (const auto& [name, values] : named_values(*plain))
    if (name.starts_with("1.") || name.starts_with("5.")) EXPECT_TRUE(values.equal(names.at(name))) << name;
}

// torch.nn.Conv2d's: uniform, up to 1 / sqrt(inputs of a number).
TEST(FactorizeTest, ConvolutionsBeginAsTorchsDo) {
  FactorizedConv2d conv({.in_channels = 64, .out_channels = 64, .kernel_size = 3}, 16);
  materialise(conv, 1);
  const auto found = named_values(conv);
  for (const auto& [name, inputs] : std::map<std::string, double>{
           {"module0.weight", 64 * 9}, {"module1.weight", 16}, {"module1.bias", 16}}) {
    const double bound = 1 / std::sqrt(inputs), largest = found.at(name).abs().max().item<double>();
    EXPECT_LE(largest, bound * 1.0001) << name;
    EXPECT_GT(largest, bound * 0.9) << name;
  }
}

TEST(FactorizeTest, ARankThatIsNoLowerIsRefusedOrLeft) {
  FactorizedLinear linear(12, 10, /*bias=*/false, 5);
  materialise(linear, 1);
  const at::Tensor x = at::randn({40, 12});
  const at::Tensor before = named_values(linear).at("module0.weight");
  linear.set_rank(x, 5);
  EXPECT_TRUE(named_values(linear).at("module0.weight").is_same(before) ||
              named_values(linear).at("module0.weight").equal(before));
  EXPECT_EQ(linear.own_parameters().size() + named_values(linear).size(), 2U) << "no bias yet";
  EXPECT_THAT([&] { linear.set_rank(x, 6); },
              ThrowsMessage<UserError>(HasSubstr("rank = 6: expected 1 to 5")));
  EXPECT_TRUE(factorizing_could_speedup(linear, 4));
  EXPECT_FALSE(factorizing_could_speedup(linear, 5));
  linear.set_rank(x, 4);
  EXPECT_EQ(named_values(linear).count("module1.bias"), 1U);
  for (const auto& one : parameters(linear)) EXPECT_TRUE(one.parameter->tensor.requires_grad()) << one.name;
  FactorizedConv2d strided({.in_channels = 8, .out_channels = 8, .kernel_size = 3, .stride = 2}, 3);
  materialise(strided, 1);
  EXPECT_THROW(strided.set_rank(at::randn({2, 8, 6, 6}), 2), UserError);
}

// A matrix of that rank is reproduced exactly.
TEST(FactorizeTest, AMatrixOfLowRankLosesNothing) {
  const at::Tensor x = at::randn({50, 8}), w = at::randn({8, 2}).matmul(at::randn({2, 9}));
  const LowRankSolution found = factorize_matrix(x, x.matmul(w), w, {}, {}, 2);
  EXPECT_EQ(found.rank, 2);
  EXPECT_TRUE(at::allclose(found.Wa.matmul(found.Wb), w, 1e-3, 1e-3));
  EXPECT_LT(found.nmse, 1e-6);
  const LowRankSolution one = factorize_matrix(x, x.matmul(w), w, {}, {}, 8);
  EXPECT_EQ(one.rank, -1);
  EXPECT_FALSE(one.Wb.defined());
  EXPECT_TRUE(at::allclose(one.Wa, w, 1e-3, 1e-3));
}

// The lower rank approximates the weights as changed by other surgery.
TEST(FactorizeTest, ALowerRankIsThatOfStandardizedWeights) {
  const Conv2dOptions options{.in_channels = 6, .out_channels = 8, .kernel_size = 3};
  FactorizedConv2d plain(options, 5), standard(options, 5);
  materialise(standard, 1);
  apply_weight_standardization(standard);
  materialise(plain, 2);
  const auto of_plain = parameters(plain), of_standard = parameters(standard);
  for (std::size_t i = 0; i < of_plain.size(); ++i) {
    const at::Tensor values = of_standard[i].parameter->tensor.detach();
    of_plain[i].parameter->tensor = values.dim() == 4 ? standardized(values) : values;
  }
  const at::Tensor x = at::randn({4, 6, 7, 7});
  for (auto* conv : {&plain, &standard}) conv->set_rank(x, 3);
  EXPECT_TRUE(at::allclose(standard.forward(x).tensor(), plain.forward(x).tensor(), 1e-3, 1e-3));
}

TEST(FactorizeTest, ABlurredConvolutionKeepsItsRank) {
  for (const bool blur_first : {true, false}) {
    Sequential net({std::make_shared<FactorizedConv2d>(
        Conv2dOptions{.in_channels = 8, .out_channels = 8, .kernel_size = 3, .stride = 2}, 5)});
    EXPECT_EQ(apply_blurpool(net, {.blur_first = blur_first, .min_channels = 1}), 1);
    materialise(net, 1);
    auto& conv = dynamic_cast<FactorizedConv2d&>(net.slots()[0]->layer());
    EXPECT_EQ(conv.latent_channels(), 5);
    EXPECT_TRUE(factorizing_could_speedup(conv, 4));
    EXPECT_THAT(
        [&] {
          conv.set_rank(at::randn({2, 8, 6, 6}), 2);
        },
        ThrowsMessage<UserError>(HasSubstr("a stride or a dilation other than 1")));
  }
}

TEST(FactorizeTest, AModelOfNarrowLayersIsAWarning) {
  State state;
  std::string warned;
  state.services->on_warning = [&](const std::string& what) { warned = what; };
  state.model = wide_net();
  Logger logger;
  Factorize().apply(Event::kInit, state, logger);
  EXPECT_THAT(warned, AllOf(StartsWith("Factorize has no effect: SequentialNet"), HasSubstr("min_channels")));
  warned.clear();
  Factorize(kNarrow).apply(Event::kInit, state, logger);
  EXPECT_EQ(warned, "");
}

}  // namespace
}  // namespace tutti
