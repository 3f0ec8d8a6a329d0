#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/surgery/blurpool.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/surgery/golden_weights.h"

namespace tutti {
namespace {

constexpr const char* kBlurFile = "blurpool.h5";

// A number, or a pair of them.
Extent2d extent_of(const GoldenCase& c, const char* attribute) {
  const std::vector<double> both = c.numbers(attribute);
  return {static_cast<int64_t>(both.front()), static_cast<int64_t>(both.back())};
}

void expect_blurred(const GoldenCase& c) {
  c.expect_only({"stride"}, {"x", "filter"});
  c.expect_only_outputs({"y"});
  const at::Tensor filter = c.holds("in/filter") ? c.tensor("in/filter") : at::Tensor();
  c.expect_close(blur_2d(c.tensor("in/x"), extent_of(c, "stride"), filter), "out/y");
}

void expect_pooled(const GoldenCase& c) {
  c.expect_only({"kernel_size", "stride", "padding", "dilation", "ceil_mode"}, {"x"});
  c.expect_only_outputs({"y"});
  const MaxPool2dOptions options{.kernel_size = extent_of(c, "kernel_size"),
                                 .stride = extent_of(c, "stride"),
                                 .padding = extent_of(c, "padding"),
                                 .dilation = extent_of(c, "dilation"),
                                 .ceil_mode = flag(c, "ceil_mode")};
  c.expect_close(blurmax_pool2d(c.tensor("in/x"), options), "out/y");
}

void expect_blurred_net(const GoldenCase& c) {
  c.expect_only({"arch", "blur_first", "min_channels", "replace_convs", "replace_maxpools", "replaced_convs",
                 "replaced_maxpools"},
                {"x", "grad_y", "weights"});
  c.expect_only_outputs({"y_before", "y_after", "grad_x", "grad"});
  const auto model = sequential_of(c.text("arch"));
  materialise(*model, 1);
  load_weights(c, *model);
  c.expect_close(model->forward(c.tensor("in/x")).tensor().detach(), "out/y_before");
  const auto named = parameters(*model);
  const auto convs = indices_of(c, "replaced_convs"), pools = indices_of(c, "replaced_maxpools");
  EXPECT_EQ(apply_blurpool(*model, {.replace_convs = flag(c, "replace_convs"),
                                    .replace_maxpools = flag(c, "replace_maxpools"),
                                    .blur_first = flag(c, "blur_first"),
                                    .min_channels = static_cast<int64_t>(c.number("min_channels"))}),
            static_cast<int>(convs.size() + pools.size()));
  materialise(*model, 1);
  EXPECT_EQ(places_of(*model, "BlurConv2d"), convs) << c.title();
  EXPECT_EQ(places_of(*model, "BlurMaxPool2d"), pools) << c.title();
  expect_gradients(c, *model, named, "out/y_after");
}

class GoldenBlurPool : public testing::TestWithParam<std::string> {};

TEST_P(GoldenBlurPool, IsComposers) {
  const GoldenCase c(golden_path(kBlurFile), GetParam());
  const std::string api = c.text("composer_api");
  if (api.ends_with(".blur_2d")) return expect_blurred(c);
  if (api.ends_with(".blurmax_pool2d")) return expect_pooled(c);
  ASSERT_TRUE(api.ends_with("apply_blurpool")) << c.title() << ": no test knows " << api;
  expect_blurred_net(c);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenBlurPool, testing::ValuesIn(golden_cases(golden_path(kBlurFile))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenBlurPool);

}  // namespace
}  // namespace tutti
