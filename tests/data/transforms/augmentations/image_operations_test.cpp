#include "data/transforms/augmentations/image_operations.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "runtime/error.h"
#include "tests/data/transforms/test_images.h"

namespace tutti {
namespace {

std::vector<std::string> names_of(const std::string& set) {
  std::vector<std::string> names;
  for (const ImageOperation& operation : augmentation_set(set)) names.emplace_back(operation.name);
  return names;
}

TEST(ImageOperations, AreNewImagesAndLeaveTheOldOne) {
  const auto draws = make_draws(1, {.name = "operations"});
  for (const at::Tensor& image : test_images()) {
    const at::Tensor before = image.clone();
    for (const ImageOperation& operation : image_operations()) {
      for (const double level : {0.0, 3.0, 10.0}) {
        const at::Tensor result = operation(image, level, *draws);
        EXPECT_TRUE(at::equal(image, before)) << operation.name;
        EXPECT_NE(result.data_ptr(), image.data_ptr()) << operation.name;
        EXPECT_EQ(result.sizes(), image.sizes()) << operation.name;
        EXPECT_TRUE(result.is_contiguous() && result.scalar_type() == at::kByte) << operation.name;
      }
    }
  }
}

// Luma of three equal channels is their value, so an operation on such an image is that on each channel.
TEST(ImageOperations, OfGrayImagesAreThoseOfThreeEqualChannels) {
  const auto draws = make_draws(2, {.name = "operations"});
  for (const at::Tensor& image : test_images()) {
    if (image.size(2) != 1) continue;
    for (const ImageOperation& operation : image_operations()) {
      const double parameter = operation.draw(7, image, *draws);
      const at::Tensor gray = operation.apply(image, parameter);
      const at::Tensor rgb = operation.apply(image.expand({-1, -1, 3}), parameter);
      EXPECT_TRUE(at::equal(gray.expand({-1, -1, 3}), rgb)) << operation.name << image.sizes();
    }
  }
}

TEST(ImageOperations, ParametersStayInTheirRanges) {
  const auto draws = make_draws(3, {.name = "operations"});
  const at::Tensor image = at::zeros({30, 60, 3}, at::kByte);
  const std::map<std::string_view, std::pair<double, double>> ranges = {{"posterize", {0, 4}},
                                                                        {"rotate", {-30, 30}},
                                                                        {"solarize", {0, 256}},
                                                                        {"shear_x", {-0.3, 0.3}},
                                                                        {"shear_y", {-0.3, 0.3}},
                                                                        {"translate_x", {-20, 20}},
                                                                        {"translate_y", {-10, 10}},
                                                                        {"color", {0.1, 10}},
                                                                        {"contrast", {0.1, 10}},
                                                                        {"brightness", {0.1, 7.5}},
                                                                        {"sharpness", {0.1, 10}},
                                                                        {"color_original", {0.1, 1.9}},
                                                                        {"contrast_original", {0.1, 1.9}},
                                                                        {"brightness_original", {0.1, 1.9}},
                                                                        {"sharpness_original", {0.1, 1.9}}};
  for (const ImageOperation& operation : image_operations()) {
    const auto range = ranges.find(operation.name);
    for (int i = 0; i < 200; ++i) {
      const double parameter = operation.draw(10, image, *draws);
      if (range == ranges.end()) {
        EXPECT_TRUE(std::isnan(parameter)) << operation.name;
      } else {
        EXPECT_GE(parameter, range->second.first) << operation.name;
        EXPECT_LE(parameter, range->second.second) << operation.name;
      }
    }
  }
}

TEST(ImageOperations, SetsAreComposers) {
  const std::vector<std::string> safe = {"autocontrast", "equalize", "posterize",   "rotate",     "solarize",
                                         "shear_x",      "shear_y",  "translate_x", "translate_y"};
  EXPECT_EQ(names_of("safe"), safe);
  std::vector<std::string> all = safe, original = safe;
  for (const std::string name : {"color", "contrast", "brightness", "sharpness"}) {
    all.push_back(name);
    original.push_back(name + "_original");
  }
  EXPECT_EQ(names_of("all"), all);
  EXPECT_EQ(names_of("original"), original);
  EXPECT_THROW(augmentation_set("some"), UserError);
}

}  // namespace
}  // namespace tutti
