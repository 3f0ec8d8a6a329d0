#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/surgery/channels_last.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/surgery/golden_weights.h"

namespace tutti {
namespace {

constexpr const char* kChannelsFile = "channels_last.h5";

void expect_strides(const GoldenCase& c, Layer& model, const std::string& group) {
  EXPECT_EQ(c.names(group).size(), parameters(model).size()) << c.title();
  for (const auto& one : parameters(model))
    c.expect_close(at::tensor(one.parameter->tensor.strides(), at::kLong), group + "/" + one.name);
}

class GoldenChannelsLast : public testing::TestWithParam<std::string> {};

TEST_P(GoldenChannelsLast, IsComposers) {
  const GoldenCase c(golden_path(kChannelsFile), GetParam());
  ASSERT_TRUE(c.text("composer_api").ends_with("apply_channels_last")) << c.title();
  c.expect_only({"arch"}, {"weights"});
  c.expect_only_outputs({"stride_before", "stride_after", "memory"});
  const auto model = sequential_of(c.text("arch"));
  materialise(*model, 1);
  load_weights(c, *model);
  expect_strides(c, *model, "out/stride_before");
  apply_channels_last(*model);
  expect_strides(c, *model, "out/stride_after");
  const auto memory = c.names("out/memory");
  for (const auto& one : parameters(*model)) {
    const at::Tensor& tensor = one.parameter->tensor;
    c.expect_close(tensor.detach(), "in/weights/" + one.name);
    if (std::ranges::count(memory, one.name) > 0)
      c.expect_close(tensor.detach().as_strided({tensor.numel()}, {1}), "out/memory/" + one.name);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenChannelsLast, testing::ValuesIn(golden_cases(golden_path(kChannelsFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenChannelsLast);

}  // namespace
}  // namespace tutti
