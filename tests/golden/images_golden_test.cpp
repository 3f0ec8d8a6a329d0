// Images in files are decoded as by Pillow, and transformed as by torchvision (make_images.py).

#include <gtest/gtest.h>

#include "data/images/decoder.h"
#include "data/transforms/augmentations/color_operations.h"
#include "data/transforms/augmentations/gaussian_blur.h"
#include "data/transforms/geometry.h"
#include "io/mapped_file.h"
#include "tests/golden/golden_file.h"

namespace tutti {
namespace {

const char* const kImages = "images.h5";

using ColorOperation = at::Tensor (*)(const at::Tensor&, double);
const std::map<std::string, ColorOperation> kColors = {{"brightness", enhance_brightness},
                                                       {"contrast", enhance_contrast},
                                                       {"saturation", enhance_color},
                                                       {"hue", adjust_hue}};

void expect_decoded(const GoldenCase& one) {
  one.expect_only({"operation"});
  one.expect_only_outputs({"pixels"});
  const MappedFile file(golden_path("images/" + one.text("title")));
  one.expect_close(decode_image(file.bytes()), "out/pixels");
}

Geometry geometry_of(const GoldenCase& one) {
  const auto part = one.numbers("part"), result = one.numbers("result");
  const auto whole = [](double number) { return static_cast<int64_t>(number); };
  const std::string mirror = one.text("mirror");
  return {.part = {whole(part[0]), whole(part[1]), {whole(part[2]), whole(part[3])}},
          .result = {whole(result[0]), whole(result[1])},
          .interpolation =
              one.text("interpolation") == "bicubic" ? Interpolation::kBicubic : Interpolation::kBilinear,
          .mirrors_columns = mirror == "columns",
          .mirrors_rows = mirror == "rows"};
}

void expect_moved(const GoldenCase& one) {
  one.expect_only({"operation", "part", "result", "mirror", "interpolation"}, {"image", "mask", "boxes"});
  one.expect_only_outputs({"image", "mask", "boxes"});
  const Geometry geometry = geometry_of(one);
  one.expect_close(placed(one.tensor("in/image"), geometry), "out/image");
  const at::Tensor mask = placed_mask(one.tensor("in/mask"), 0, geometry);
  EXPECT_TRUE(mask.equal(one.tensor("out/mask")));
  const at::Tensor boxes = placed_boxes(one.tensor("in/boxes"), geometry);
  EXPECT_TRUE(boxes.allclose(one.tensor("out/boxes"), 1e-5, 1e-4)) << boxes << one.tensor("out/boxes");
}

void expect_blurred(const GoldenCase& one) {
  one.expect_only({"operation", "kernel", "sigma"}, {"image"});
  const auto kernel = one.numbers("kernel");
  const ImageSize size{static_cast<int64_t>(kernel[0]), static_cast<int64_t>(kernel[1])};
  one.expect_close(gaussian_blur(one.tensor("in/image"), size, one.number("sigma")), "out/image");
}

void expect_colored(const GoldenCase& one, const std::string& operation) {
  one.expect_only({"operation", "factor"}, {"image"});
  const auto change = known(kColors, operation, "operation");
  one.expect_close(change(one.tensor("in/image"), one.number("factor")), "out/image");
}

class ImagesGolden : public testing::TestWithParam<std::string> {};

TEST_P(ImagesGolden, EqualsPillowAndTorchvision) {
  const GoldenCase one(golden_path(kImages), GetParam());
  const std::string operation = one.text("operation");
  if (operation == "decode")
    expect_decoded(one);
  else if (operation == "geometry")
    expect_moved(one);
  else if (operation == "blur")
    expect_blurred(one);
  else
    expect_colored(one, operation);
}

INSTANTIATE_TEST_SUITE_P(Of, ImagesGolden, testing::ValuesIn(golden_cases(golden_path(kImages))));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ImagesGolden);

}  // namespace
}  // namespace tutti
