#include "training/precision.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/layers/norm.h"
#include "models/layers/statistics_rows.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tensors/autograd.h"
#include "training/settings.h"

namespace tutti {
namespace {

Precision precision(const std::string& name, const std::string& apart = "") {
  const std::vector<Catalog> catalogs = {train_catalog(), section_catalog<PrecisionSettings>()};
  return Precision::read(
      resolve(parse_recipe("[train]\nmax_duration = '1ep'\nprecision = '" + name + "'\n[precision]\n" + apart,
                           "test.toml"),
              catalogs));
}

std::string refusal(const std::string& name, const std::string& apart = "") try {
  precision(name, apart);
  return "";
} catch (const UserError& error) {
  return error.headline();
}

TEST(PrecisionTest, NamesAreComposers) {
  EXPECT_FALSE(precision("fp32").autocast);
  for (const char* name : {"amp", "amp_fp16"}) {
    EXPECT_EQ(precision(name).autocast, at::kHalf);
    EXPECT_EQ(precision(name).name, "amp_fp16");
    EXPECT_TRUE(precision(name).scales_loss());
  }
  EXPECT_EQ(precision("amp_bf16").autocast, at::kBFloat16);
  EXPECT_FALSE(precision("amp_bf16").scales_loss());
}

TEST(PrecisionTest, UnsupportedPrecisionsAreRefused) {
  EXPECT_EQ(refusal("amp_fp8"),
            "test.toml:3: train.precision = \"amp_fp8\": 8-bit numbers need a GPU of NVIDIA's and its "
            "Transformer Engine; here amp_bf16 is the fastest");
  for (const char* name : {"fp32", "amp_fp16"})
    EXPECT_EQ(refusal(name, "param_dtype = 'bf16'"),
              "test.toml:5: precision.param_dtype = \"bf16\": bf16 parameters compute in bf16: they need "
              "[train] precision = \"amp_bf16\", not \"" +
                  std::string(name) + "\"");
  EXPECT_NE(refusal("amp_fp16", "reduce_dtype = 'fp16'").find("expected one of fp32, bf16"),
            std::string::npos);
  EXPECT_EQ(refusal("amp_bf16", "param_dtype = 'bf16'\nreduce_dtype = 'fp32'\nbuffer_dtype = 'bf16'"), "");
}

TEST(PrecisionTest, ParametersAndBuffersAreCastAndNothingElse) {
  BatchNorm2d norm(3);
  materialise(norm, 1);
  cast(norm, precision("amp_bf16", "param_dtype = 'bf16'"));
  for (const auto& one : parameters(norm)) {
    EXPECT_EQ(one.parameter->tensor.scalar_type(), at::kBFloat16);
    EXPECT_TRUE(one.parameter->tensor.requires_grad() && one.parameter->tensor.is_leaf());
  }
  EXPECT_EQ(buffers(norm)[0].buffer->tensor.scalar_type(), at::kFloat);
  cast(norm, precision("amp_bf16", "buffer_dtype = 'bf16'"));
  EXPECT_EQ(buffers(norm)[0].buffer->tensor.scalar_type(), at::kBFloat16);
  EXPECT_EQ(buffers(norm)[2].buffer->tensor.scalar_type(), at::kLong);
}

// In training and evaluation, whatever its weights and its statistics are of.
TEST(PrecisionTest, NormalisationTakesEveryMixture) {
  const at::Tensor x = at::randn({8, 3, 4, 4});
  for (const char* apart :
       {"", "param_dtype = 'bf16'", "buffer_dtype = 'bf16'", "param_dtype = 'bf16'\nbuffer_dtype = 'bf16'"}) {
    BatchNorm2d norm(3);
    materialise(norm, 1);
    cast(norm, precision("amp_bf16", apart));
    std::vector<RunningStatistics> found;
    const ForwardContext training{true, &found}, evaluating{false, nullptr};
    const AutocastScope autocast(at::kBFloat16);
    set_context(norm, &training);
    const at::Tensor normal = norm.forward(x.to(at::kBFloat16)).tensor().to(at::kFloat);
    EXPECT_LT(normal.mean().abs().item<double>(), 0.02) << apart;
    EXPECT_NEAR(normal.var().item<double>(), 1.0, 0.05) << apart;
    for (const auto& one : found) apply(one);
    set_context(norm, &evaluating);
    const at::Tensor evaluated = norm.forward(x.to(at::kBFloat16)).tensor().to(at::kFloat);
    EXPECT_TRUE(at::allclose(evaluated, x, 0.1, 0.2)) << apart;
  }
}

}  // namespace
}  // namespace tutti
