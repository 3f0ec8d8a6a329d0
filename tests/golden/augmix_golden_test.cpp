#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/transforms/augmentations/augmix.h"
#include "runtime/error.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/golden_images.h"
#include "tests/golden/scripted_draws.h"

namespace tutti {
namespace {

constexpr const char* kAugMix = "augmix.h5";

AugMixOptions augmix_options(const GoldenCase& c) {
  return {.severity = static_cast<int64_t>(c.number("severity")),
          .depth = static_cast<int64_t>(c.number("depth")),
          .width = static_cast<int64_t>(c.number("width")),
          .alpha = c.number("alpha"),
          .augmentation_set = c.text("augmentation_set")};
}

// The whole numbers that AugMix draws: of each chain its depth, where that is drawn, and its operations.
std::deque<int64_t> depths_and_operations(const GoldenCase& c) {
  std::deque<int64_t> drawn, operations = whole_numbers(c.tensor("in/op_index"));
  for (const int64_t depth : whole_numbers(c.tensor("in/depths"))) {
    if (c.number("depth") <= 0) drawn.push_back(depth);
    for (int64_t i = 0; i < depth; ++i) {
      drawn.push_back(operations.at(0));
      operations.pop_front();
    }
  }
  EXPECT_TRUE(operations.empty()) << c.title();
  return drawn;
}

DrawScript augmix_script(const GoldenCase& c) {
  DrawScript script{.uniform = drawn_numbers(c.tensor("in/op_draws")),
                    .integer = depths_and_operations(c),
                    .beta = drawn_numbers(c.tensor("in/mixing_weight"))};
  const at::Tensor weights = c.tensor("in/chain_weights");
  for (const at::Tensor& row : weights.reshape({-1, weights.size(-1)}).unbind()) {
    const std::deque<double> numbers = drawn_numbers(row);
    script.dirichlet.emplace_back(numbers.begin(), numbers.end());
  }
  return script;
}

class GoldenAugMix : public testing::TestWithParam<std::string> {};

TEST_P(GoldenAugMix, GivesTheImagesOfComposer) {
  const GoldenCase c(golden_path(kAugMix), GetParam());
  c.expect_only(
      {"severity", "depth", "width", "alpha", "augmentation_set", "ops"},
      {"image", "depths", "chain_weights", "mixing_weight", "op_index", "op_draws", "op_effective"});
  if (c.has("error")) {
    EXPECT_THROW(check_options(augmix_options(c)), UserError) << c.title();
    return;
  }
  c.expect_only_outputs({"image", "steps"});
  const at::Tensor images = c.tensor("in/image");
  ScriptedDraws draws(augmix_script(c));
  const at::Tensor got = augmix_image(images, augmix_options(c), draws);
  draws.expect_all_used();
  EXPECT_EQ(got.scalar_type(), images.scalar_type()) << c.title();
  c.expect_close(got, "out/image");

  GoldenOperations operations(c);
  std::deque<int64_t> depths = whole_numbers(c.tensor("in/depths"));
  for (const at::Tensor& image : pixels_of_each(images)) {
    for (int64_t chain = 0; chain < augmix_options(c).width; ++chain) {
      operations.expect_next(image, depths.at(0));
      depths.pop_front();
    }
  }
  EXPECT_TRUE(depths.empty()) << c.title();
  operations.expect_all_seen();
}

INSTANTIATE_TEST_SUITE_P(All, GoldenAugMix, testing::ValuesIn(golden_cases(golden_path(kAugMix))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenAugMix);

}  // namespace
}  // namespace tutti
