#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/transforms/augmentations/image_operations.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/golden_images.h"
#include "tests/golden/scripted_draws.h"

namespace tutti {
namespace {

constexpr const char* kPrimitives = "augmentation_primitives.h5";

ImageOperation operation_named(const std::string& name) {
  for (const ImageOperation& operation : image_operations())
    if (operation.name == name) return operation;
  throw std::logic_error("no image operation is called " + name);
}

class GoldenPrimitives : public testing::TestWithParam<std::string> {};

TEST_P(GoldenPrimitives, GiveTheBytesOfPillow) {
  const GoldenCase c(golden_path(kPrimitives), GetParam());
  c.expect_only({"op", "pillow_version"}, {"images", "image_index", "levels", "draws", "effective"});
  c.expect_only_outputs({"images"});
  const ImageOperation operation = operation_named(c.text("op"));
  const at::Tensor images = c.tensor("in/images"), index = c.tensor("in/image_index");
  const at::Tensor levels = c.tensor("in/levels"), draws = c.tensor("in/draws");
  const at::Tensor effective = c.tensor("in/effective"), want = c.tensor("out/images");
  ASSERT_EQ(want.size(0), index.numel()) << c.title();
  for (int64_t run = 0; run < index.numel(); ++run) {
    const double level = levels[run].item<double>();
    const at::Tensor image = images[index[run].item<int64_t>()];
    const std::string what = c.title() + ", run " + std::to_string(run);
    expect_operation(operation, level, draws[run], effective[run].item<double>(), image, want[run], what);
    ScriptedDraws scripted({.uniform = drawn_numbers(draws[run])});
    expect_same_image(operation(image, level, scripted), want[run], what);
    scripted.expect_all_used();
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenPrimitives, testing::ValuesIn(golden_cases(golden_path(kPrimitives))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenPrimitives);

}  // namespace
}  // namespace tutti
