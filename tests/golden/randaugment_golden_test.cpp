#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/transforms/augmentations/randaugment.h"
#include "runtime/error.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/golden_images.h"
#include "tests/golden/scripted_draws.h"

namespace tutti {
namespace {

constexpr const char* kRandAugment = "randaugment.h5";

RandAugmentOptions randaugment_options(const GoldenCase& c) {
  return {.severity = static_cast<int64_t>(c.number("severity")),
          .depth = static_cast<int64_t>(c.number("depth")),
          .augmentation_set = c.text("augmentation_set")};
}

class GoldenRandAugment : public testing::TestWithParam<std::string> {};

TEST_P(GoldenRandAugment, GivesTheImagesOfComposer) {
  const GoldenCase c(golden_path(kRandAugment), GetParam());
  c.expect_only({"severity", "depth", "augmentation_set", "ops"},
                {"image", "op_index", "op_draws", "op_effective"});
  if (c.has("error")) {
    EXPECT_THROW(check_options(randaugment_options(c)), UserError) << c.title();
    return;
  }
  c.expect_only_outputs({"image", "steps"});
  const at::Tensor images = c.tensor("in/image"), index = c.tensor("in/op_index");
  ScriptedDraws draws({.uniform = drawn_numbers(c.tensor("in/op_draws")), .integer = whole_numbers(index)});
  const at::Tensor got = randaugment_image(images, randaugment_options(c), draws);
  draws.expect_all_used();
  EXPECT_EQ(got.scalar_type(), images.scalar_type()) << c.title();
  c.expect_close(got, "out/image");

  GoldenOperations operations(c);
  for (const at::Tensor& image : pixels_of_each(images))
    operations.expect_next(image, randaugment_options(c).depth);
  operations.expect_all_seen();
}

INSTANTIATE_TEST_SUITE_P(All, GoldenRandAugment, testing::ValuesIn(golden_cases(golden_path(kRandAugment))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenRandAugment);

}  // namespace
}  // namespace tutti
