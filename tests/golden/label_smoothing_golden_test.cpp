#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/loop/label_smoothing.h"
#include "tests/golden/golden_file.h"

namespace tutti {
namespace {

constexpr const char* kLabelSmoothingFile = "label_smoothing.h5";

class GoldenLabelSmoothing : public testing::TestWithParam<std::string> {};

TEST_P(GoldenLabelSmoothing, SmoothsAsComposerDoes) {
  const GoldenCase c(golden_path(kLabelSmoothingFile), GetParam());
  c.expect_only({"smoothing"}, {"logits", "target"});
  c.expect_only_outputs({"target"});
  c.expect_close(smooth_labels(c.tensor("in/logits"), c.tensor("in/target"), c.number("smoothing")),
                 "out/target");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenLabelSmoothing,
                         testing::ValuesIn(golden_cases(golden_path(kLabelSmoothingFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenLabelSmoothing);

}  // namespace
}  // namespace tutti
