#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/surgery/weight_standardization.h"
#include "models/layers/blocks.h"
#include "models/layers/conv.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/surgery/golden_weights.h"

namespace tutti {
namespace {

constexpr const char* kStandardizationFile = "weight_standardization.h5";

std::shared_ptr<Layer> plain_convolution(at::IntArrayRef w, bool bias) {
  if (w.size() == 3)
    return std::make_shared<Conv1d>(
        Conv1dOptions{.in_channels = w[1], .out_channels = w[0], .kernel_size = w[2], .bias = bias});
  if (w.size() == 4)
    return std::make_shared<Conv2d>(
        Conv2dOptions{.in_channels = w[1], .out_channels = w[0], .kernel_size = {w[2], w[3]}, .bias = bias});
  return std::make_shared<Conv3d>(Conv3dOptions{
      .in_channels = w[1], .out_channels = w[0], .kernel_size = {w[2], w[3], w[4]}, .bias = bias});
}

// A case without `arch` has plain convolutions one after another.
std::shared_ptr<Layer> net_of(const GoldenCase& c) {
  if (c.has("arch")) return sequential_of(c.text("arch"));
  std::vector<std::shared_ptr<Layer>> convolutions;
  for (std::string name; c.holds(name = "in/weights/" + std::to_string(convolutions.size()) + ".weight");)
    convolutions.push_back(
        plain_convolution(c.tensor(name).sizes(), c.holds(name.substr(0, name.rfind('.')) + ".bias")));
  return std::make_shared<Sequential>(std::move(convolutions));
}

class GoldenWeightStandardization : public testing::TestWithParam<std::string> {};

TEST_P(GoldenWeightStandardization, IsComposers) {
  const GoldenCase c(golden_path(kStandardizationFile), GetParam());
  ASSERT_TRUE(c.text("composer_api").ends_with("apply_weight_standardization")) << c.title();
  c.expect_only({"arch", "n_last_layers_ignore"}, {"x", "grad_y", "weights"});
  c.expect_only_outputs({"count", "y", "grad_x", "grad"});
  const auto model = net_of(c);
  materialise(*model, 1);
  load_weights(c, *model);
  const auto named = parameters(*model);
  const int count =
      apply_weight_standardization(*model, static_cast<int64_t>(c.number("n_last_layers_ignore")));
  c.expect_close(at::tensor(count, at::kLong), "out/count");
  expect_gradients(c, *model, named);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenWeightStandardization,
                         testing::ValuesIn(golden_cases(golden_path(kStandardizationFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenWeightStandardization);

}  // namespace
}  // namespace tutti
