#include "data/transforms/image_transforms.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/error.h"
#include "tests/data/transforms/given_draws.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

// Numbered bytes [height, width, channels].
at::Tensor bytes(int64_t height, int64_t width, int64_t channels) {
  return at::arange(height * width * channels).view({height, width, channels}).to(at::kByte);
}

at::Tensor as_tensor(const at::Tensor& image) { return image.permute({2, 0, 1}).to(at::kFloat); }

at::Tensor rows(const std::vector<std::vector<int>>& values) {
  std::vector<at::Tensor> all;
  for (const auto& row : values) all.push_back(at::tensor(row).to(at::kByte));
  return at::stack(all);
}

at::Tensor cropped_at(const at::Tensor& image, const RandomCropOptions& options, int64_t top, int64_t left,
                      std::vector<std::pair<int64_t, int64_t>> ranges) {
  GivenDraws draws;
  draws.integers = {top, left};
  const at::Tensor crop = random_crop(image, options, draws);
  EXPECT_EQ(draws.ranges, ranges) << "rows, then columns";
  return crop;
}

TEST(RandomCrop, IsCutAtTheDrawnPlace) {
  const at::Tensor image = bytes(5, 7, 3);
  const RandomCropOptions options{.size = {2, 4}};
  const std::vector<std::pair<int64_t, int64_t>> ranges = {{0, 4}, {0, 4}};
  const at::Tensor crop = cropped_at(image, options, 3, 1, ranges);
  EXPECT_TRUE(at::equal(crop, image.slice(0, 3, 5).slice(1, 1, 5)));
  EXPECT_TRUE(at::equal(cropped_at(as_tensor(image), options, 3, 1, ranges), as_tensor(crop)));
  EXPECT_TRUE(at::equal(cropped_at(image.select(2, 0), options, 3, 1, ranges), crop.select(2, 0)));
}

TEST(RandomCrop, OfTheWholeImageDrawsNothing) {
  GivenDraws none;
  EXPECT_TRUE(at::equal(random_crop(bytes(3, 4, 1), {.size = {3, 4}}, none), bytes(3, 4, 1)));
}

TEST(RandomCrop, PaddingIsLeftTopRightBottom) {
  const at::Tensor image = bytes(2, 3, 1).add(1).to(at::kByte);
  const RandomCropOptions options{.size = {5, 7}, .padding = {{1, 2, 3, 1}}, .fill = 9};
  GivenDraws none;
  const at::Tensor padded = random_crop(image, options, none);
  const at::Tensor expected = rows({{9, 9, 9, 9, 9, 9, 9},
                                    {9, 9, 9, 9, 9, 9, 9},
                                    {9, 1, 2, 3, 9, 9, 9},
                                    {9, 4, 5, 6, 9, 9, 9},
                                    {9, 9, 9, 9, 9, 9, 9}});
  EXPECT_TRUE(at::equal(padded.select(2, 0), expected)) << padded.select(2, 0);
  EXPECT_TRUE(at::equal(random_crop(as_tensor(image), options, none), as_tensor(padded)));
}

// The columns that numpy.pad([1, 2, 3], 2, mode) gives.
TEST(RandomCrop, PaddingModesAreNumpys) {
  const std::map<std::string, std::vector<int>> expected = {{"edge", {1, 1, 1, 2, 3, 3, 3}},
                                                            {"reflect", {3, 2, 1, 2, 3, 2, 1}},
                                                            {"symmetric", {2, 1, 1, 2, 3, 3, 2}}};
  const at::Tensor line = at::tensor({1, 2, 3}).to(at::kByte).view({1, 3, 1});
  GivenDraws none;
  for (const auto& [mode, values] : expected) {
    const RandomCropOptions across{.size = {1, 7}, .padding = {{2, 0, 2, 0}}, .padding_mode = mode};
    EXPECT_TRUE(at::equal(random_crop(line, across, none).flatten(), at::tensor(values).to(at::kByte)))
        << mode;
    const RandomCropOptions down{.size = {7, 1}, .padding = {{0, 2, 0, 2}}, .padding_mode = mode};
    EXPECT_TRUE(
        at::equal(random_crop(line.transpose(0, 1), down, none).flatten(), at::tensor(values).to(at::kByte)))
        << mode;
  }
}

// Of 2 rows 3 are missing: torchvision adds 3 above and 3 below, and draws a row of 4.
TEST(RandomCrop, AnImageThatIsTooSmallIsPaddedOnBothSides) {
  const at::Tensor image = bytes(2, 6, 1).add(1).to(at::kByte);
  const RandomCropOptions options{.size = {5, 6}, .pad_if_needed = true};
  const at::Tensor crop = cropped_at(image, options, 1, 0, {{0, 4}, {0, 1}});
  EXPECT_EQ(crop.sizes(), (at::IntArrayRef{5, 6, 1}));
  EXPECT_TRUE(at::equal(crop.slice(0, 2, 4), image));
  EXPECT_EQ(crop.slice(0, 0, 2).max().item<int>(), 0);
}

// (5 - 2) / 2 = 1.5 is rounded to 2, (5 - 4) / 2 = 0.5 to 0.
TEST(CenterCrop, HalvesAreRoundedToEven) {
  const at::Tensor image = bytes(5, 5, 2);
  EXPECT_TRUE(at::equal(center_crop(image, {2, 4}), image.slice(0, 2, 4).slice(1, 0, 4)));
  EXPECT_TRUE(at::equal(center_crop(as_tensor(image), {2, 4}), as_tensor(center_crop(image, {2, 4}))));
  EXPECT_TRUE(at::equal(center_crop(image, {5, 5}), image));
}

// Of the missing three rows one is added above and two below.
TEST(CenterCrop, ASmallerImageIsPaddedWithZeros) {
  const at::Tensor image = bytes(2, 5, 1).add(1).to(at::kByte);
  const at::Tensor crop = center_crop(image, {5, 3}).select(2, 0);
  EXPECT_TRUE(at::equal(crop, rows({{0, 0, 0}, {2, 3, 4}, {7, 8, 9}, {0, 0, 0}, {0, 0, 0}}))) << crop;
}

TEST(Flip, MirrorsColumnsWithTheProbability) {
  const at::Tensor image = bytes(2, 3, 2);
  GivenDraws draws;
  draws.outcomes = {true, true, false};
  EXPECT_TRUE(at::equal(flip(image, 0.3, draws), image.flip({1})));
  EXPECT_TRUE(at::equal(flip(as_tensor(image), 0.3, draws), as_tensor(image.flip({1}))));
  EXPECT_TRUE(at::equal(flip(image, 0.3, draws), image));
  EXPECT_EQ(draws.probabilities, (std::vector<double>{0.3, 0.3, 0.3}));
}

// The weights of the pixels of an edge of `from` for pixel `to_pixel` of `to`: a triangle as wide as the
// scale.
std::vector<double> triangle(int64_t from, int64_t to, int64_t to_pixel) {
  const double ratio = static_cast<double>(from) / static_cast<double>(to), scale = std::max(ratio, 1.0);
  const double center = (static_cast<double>(to_pixel) + 0.5) * ratio;
  std::vector<double> weights;
  double sum = 0;
  for (int64_t i = 0; i < from; ++i) {
    weights.push_back(std::max(0.0, 1 - std::abs((static_cast<double>(i) + 0.5 - center) / scale)));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

at::Tensor weights_of(int64_t from, int64_t to) {
  std::vector<at::Tensor> all;
  for (int64_t i = 0; i < to; ++i) all.push_back(at::tensor(triangle(from, to, i), at::kDouble));
  return at::stack(all);
}

TEST(Resize, OfTensorsIsATriangleFilter) {
  const at::Tensor image = at::rand({3, 6, 9});
  for (const ImageSize size : {ImageSize{3, 4}, ImageSize{9, 5}, ImageSize{4, 12}}) {
    const at::Tensor made = resize(image, ResizeOptions{.size = size});
    const at::Tensor expected = at::matmul(at::matmul(weights_of(6, size.height), image.to(at::kDouble)),
                                           weights_of(9, size.width).transpose(0, 1));
    ASSERT_EQ(made.sizes(), expected.sizes());
    EXPECT_LT((made - expected).abs().max().item<double>(), 1e-6);
  }
}

// Image.resize(..., BILINEAR) of Pillow 11.3 on the bytes (37 i i + 91 j + 13 i j) mod 256.
TEST(Resize, OfBytesIsPilsButForOne) {
  const at::Tensor i = at::arange(6).view({6, 1}), j = at::arange(9).view({1, 9});
  const at::Tensor gray = (37 * i * i + 91 * j + 13 * i * j).remainder(256).to(at::kByte);
  const at::Tensor smaller = rows({{97, 130, 129, 154}, {116, 159, 144, 140}, {136, 148, 111, 145}});
  const at::Tensor taller = rows({{52, 113, 108, 103, 164},
                                  {74, 146, 123, 120, 167},
                                  {94, 172, 142, 138, 162},
                                  {89, 147, 159, 145, 129},
                                  {110, 143, 155, 150, 134},
                                  {135, 150, 144, 145, 145},
                                  {141, 171, 141, 112, 139},
                                  {131, 165, 107, 117, 151},
                                  {118, 153, 73, 130, 164}});
  const at::Tensor images = at::stack({gray, gray.bitwise_not(), gray}, 2);
  for (const at::Tensor& pils : {smaller, taller}) {
    const ResizeOptions options{.size = ImageSize{pils.size(0), pils.size(1)}};
    const at::Tensor made = resize(images, options);
    ASSERT_EQ(made.sizes(), (at::IntArrayRef{pils.size(0), pils.size(1), 3}));
    ASSERT_EQ(made.scalar_type(), at::kByte);
    const auto distance = [](const at::Tensor& a, const at::Tensor& b) {
      return (a.to(at::kInt) - b.to(at::kInt)).abs().max().item<int>();
    };
    EXPECT_LE(distance(made.select(2, 0), pils), 1);
    EXPECT_LE(distance(made.select(2, 1), pils.bitwise_not()), 1);
    EXPECT_LE(distance(resize(gray, options), pils), 1) << "without channels";
  }
}

// torchvision: the larger edge is int(size * larger / smaller).
TEST(Resize, OneNumberIsTheSmallerEdge) {
  EXPECT_EQ(resized({40, 30}, {.smaller_edge = 10}), (ImageSize{13, 10}));
  EXPECT_EQ(resized({30, 40}, {.smaller_edge = 10}), (ImageSize{10, 13}));
  EXPECT_EQ(resized({30, 30}, {.smaller_edge = 10}), (ImageSize{10, 10}));
  EXPECT_EQ(resized({90, 30}, {.smaller_edge = 10, .max_size = 20}), (ImageSize{20, 6}));
  EXPECT_EQ(resized({30, 40}, {.smaller_edge = 10, .max_size = 20}), (ImageSize{10, 13}));
}

TEST(Resize, ToTheSameSizeChangesNothing) {
  const at::Tensor image = bytes(4, 5, 3);
  EXPECT_TRUE(at::equal(resize(image, ResizeOptions{.smaller_edge = 4}), image));
}

SampleSpec samples_of(const Shape& shape, at::ScalarType dtype) {
  return {{{"input", shape}, {"target", {}}}, 10, {{"input", dtype}, {"target", at::kLong}}};
}

TEST(ImageTransforms, ChangeTheLayoutOfSamples) {
  const auto shape_after = [](const TransformPtr& transform, const Shape& shape, at::ScalarType dtype) {
    const SampleSpec after = transform->spec(samples_of(shape, dtype));
    EXPECT_EQ(after.dtypes.at("input"), dtype);
    EXPECT_EQ(after.classes, 10);
    return after.shapes.at("input");
  };
  const auto crop = random_crop_transform({.size = {8, 6}, .padding = {{2, 0, 2, 0}}});
  EXPECT_EQ(shape_after(crop, {8, 4, 3}, at::kByte), (Shape{8, 6, 3}));
  EXPECT_EQ(shape_after(crop, {8, 4}, at::kByte), (Shape{8, 6}));
  EXPECT_EQ(shape_after(crop, {5, 8, 4}, at::kFloat), (Shape{5, 8, 6}));
  EXPECT_EQ(shape_after(center_crop_transform({4, 5}), {8, 6, 1}, at::kByte), (Shape{4, 5, 1}));
  EXPECT_EQ(shape_after(flip_transform(0.5), {8, 6, 1}, at::kByte), (Shape{8, 6, 1}));
  EXPECT_EQ(shape_after(resize_transform({.smaller_edge = 3}), {1, 8, 6}, at::kFloat), (Shape{1, 4, 3}));
}

// The key that is to blame, and why.
std::pair<std::string, std::string> blamed(const TransformPtr& transform, const SampleSpec& samples) {
  try {
    transform->spec(samples);
  } catch (const TransformError& error) {
    return {error.option, error.what()};
  }
  return {"none", ""};
}

TEST(ImageTransforms, RefuseWhatIsNoImage) {
  const auto crop = center_crop_transform({2, 2});
  for (const SampleSpec& samples :
       {samples_of({64}, at::kFloat), samples_of({8, 8}, at::kFloat), samples_of({3, 8, 8}, at::kLong),
        samples_of({3, 8, 8}, at::kByte), samples_of({0, 8, 3}, at::kByte), SampleSpec{}})
    EXPECT_EQ(blamed(crop, samples).first, "kind");
  EXPECT_THAT(
      blamed(crop, samples_of({3, 8, 8}, at::kByte)).second,
      HasSubstr("expected images, uint8 [height, width, channels] or float32 [channels, height, width]; "
                "here 'input' is uint8 [3, 8, 8] a sample"));
}

TEST(ImageTransforms, RefuseACropThatIsLargerThanTheImage) {
  const SampleSpec images = samples_of({8, 6, 3}, at::kByte);
  EXPECT_EQ(blamed(center_crop_transform({8, 7}), images).first, "size");
  EXPECT_EQ(blamed(random_crop_transform({.size = {9, 6}}), images).first, "size");
  EXPECT_THAT(blamed(random_crop_transform({.size = {9, 6}, .padding = {{1, 0, 1, 0}}}), images).second,
              HasSubstr("the images are [8, 6], padded [8, 8]"));
  EXPECT_EQ(blamed(random_crop_transform({.size = {9, 6}, .padding = {{0, 1, 0, 0}}}), images).first, "none");
  EXPECT_EQ(blamed(random_crop_transform({.size = {9, 6}, .pad_if_needed = true}), images).first, "none");
}

TEST(ImageTransforms, RefuseToMirrorMoreThanThereIs) {
  const auto mirrored = [](const std::string& mode, int64_t columns) {
    const RandomCropOptions options{.size = {2, 2}, .padding = {{0, 0, columns, 0}}, .padding_mode = mode};
    return blamed(random_crop_transform(options), samples_of({9, 3, 1}, at::kByte)).first;
  };
  EXPECT_EQ(mirrored("reflect", 2), "none");
  EXPECT_EQ(mirrored("reflect", 3), "padding_mode");
  EXPECT_EQ(mirrored("symmetric", 3), "none");
  EXPECT_EQ(mirrored("symmetric", 4), "padding_mode");
  EXPECT_EQ(mirrored("edge", 100), "none");
}

}  // namespace
}  // namespace tutti
