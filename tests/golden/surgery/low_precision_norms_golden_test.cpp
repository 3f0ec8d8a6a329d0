#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "algorithms/surgery/low_precision_norms.h"
#include "models/layers/blocks.h"
#include "tensors/autograd.h"
#include "tests/golden/golden_file.h"

namespace tutti {
namespace {

constexpr const char* kNormsFile = "low_precision_norms.h5";

// Composer's computation in a mode of the data. On a CPU it does so as without autocast.
struct NormMode {
  std::optional<at::ScalarType> autocast;
  bool on_cpus = true;
};

NormMode norm_mode(const GoldenCase& c) {
  static const std::map<std::string, NormMode> modes = {{"fp32", {}},
                                                        {"cpu_autocast_bf16", {at::kBFloat16, false}},
                                                        {"cpu_autocast_fp16", {at::kHalf, false}},
                                                        {"forced_bf16", {at::kBFloat16}},
                                                        {"forced_fp16", {at::kHalf}}};
  return known(modes, c.text("mode"), "mode of a norm");
}

at::ScalarType dtype_of(const GoldenCase& c) {
  static const std::map<std::string, at::ScalarType> dtypes = {
      {"torch.float32", at::kFloat}, {"torch.bfloat16", at::kBFloat16}, {"torch.float16", at::kHalf}};
  return known(dtypes, c.text("dtype"), "dtype");
}

std::shared_ptr<Layer> low_precision_norm_of(const GoldenCase& c) {
  const bool affine = c.holds("in/weights/weight"), bias = c.holds("in/weights/bias");
  const at::Tensor x = c.tensor("in/x");
  if (c.text("composer_api").ends_with("apply_low_precision_groupnorm"))
    return std::make_shared<GroupNorm>(
        GroupNormOptions{.groups = static_cast<int64_t>(c.number("num_groups")),
                         .channels = x.size(1),
                         .eps = c.number("eps"),
                         .affine = affine});
  if (!c.text("composer_api").ends_with("apply_low_precision_layernorm"))
    throw std::logic_error("no test knows " + c.text("composer_api"));
  const Shape shape = affine ? c.tensor("in/weights/weight").sizes().vec() : Shape{x.size(-1)};
  return std::make_shared<LayerNorm>(
      LayerNormOptions{.shape = shape, .eps = c.number("eps"), .affine = affine, .bias = bias});
}

at::Tensor normed(Layer& layer, const at::Tensor& x, std::optional<at::ScalarType> autocast) {
  const AutocastScope scope(autocast);
  return layer.forward(x).tensor().detach();
}

class GoldenLowPrecisionNorms : public testing::TestWithParam<std::string> {};

TEST_P(GoldenLowPrecisionNorms, AreComposers) {
  const GoldenCase c(golden_path(kNormsFile), GetParam());
  c.expect_only({"dtype", "eps", "mode", "num_groups"}, {"weights", "x"});
  c.expect_only_outputs({"y", "y_plain"});
  const NormMode mode = norm_mode(c);
  Sequential net({low_precision_norm_of(c)});
  materialise(net, 1);
  for (const auto& one : parameters(net)) {
    const at::NoGradGuard no_grad;
    one.parameter->tensor.copy_(c.tensor("in/weights/" + one.parameter->name));
  }
  const at::Tensor x = c.tensor("in/x");
  c.expect_close(normed(net, x, mode.autocast), "out/y_plain");
  const Precision precision{.autocast = mode.autocast};
  const int replaced = apply_low_precision_layernorm(net, precision, mode.on_cpus) +
                       apply_low_precision_groupnorm(net, precision, mode.on_cpus);
  EXPECT_EQ(replaced, mode.autocast ? 1 : 0);
  const at::Tensor y = normed(net, x, mode.autocast);
  EXPECT_EQ(y.scalar_type(), dtype_of(c));
  c.expect_close(y.to(at::kFloat), "out/y");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenLowPrecisionNorms,
                         testing::ValuesIn(golden_cases(golden_path(kNormsFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenLowPrecisionNorms);

}  // namespace
}  // namespace tutti
