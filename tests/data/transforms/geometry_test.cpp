#include "data/transforms/geometry.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/transforms/augmentations/color_jitter.h"
#include "data/transforms/augmentations/cutout.h"
#include "data/transforms/augmentations/gaussian_blur.h"
#include "data/transforms/augmentations/randaugment.h"
#include "data/transforms/ignore_index.h"
#include "data/transforms/image_transforms.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

// Images, masks as large, and boxes.
SampleSpec segmented(const ImageSize& size) {
  return {{{"input", {size.height, size.width, 3}},
           {"target", {size.height, size.width}},
           {"depth", {1, size.height, size.width}},
           {"boxes", {2, 4}}},
          5,
          {{"input", at::kByte}, {"target", at::kLong}, {"depth", at::kFloat}, {"boxes", at::kFloat}},
          {"boxes"}};
}

// Each pixel of image and masks is its number.
Batch numbered(int64_t rows, const ImageSize& size) {
  const at::Tensor numbers = at::arange(size.height * size.width).view({1, size.height, size.width});
  const at::Tensor all = numbers.expand({rows, -1, -1}).contiguous();
  return TensorTree::Children{
      {"input", all.to(at::kByte).unsqueeze(3).expand({-1, -1, -1, 3}).contiguous()},
      {"target", all},
      {"depth", all.unsqueeze(1).to(at::kFloat)},
      {"boxes",
       at::tensor({1., 2., 5., 4., 0., 0., 9., 7.}, at::kFloat).view({1, 2, 4}).expand({rows, -1, -1})}};
}

const ImageSize kSize{7, 9};

Batch moved(const TransformPtr& transform, uint64_t seed) {
  Batch batch = numbered(3, kSize);
  transform->apply(batch, [&](int64_t row) { return make_draws(seed, {"t", 0, row}); });
  return batch;
}

// The image's pixels say where they come from: so do those of the masks.
void expect_together(const Batch& batch) {
  const at::Tensor image = batch["input"].select(3, 0).to(at::kLong);
  EXPECT_TRUE(at::equal(batch["target"], image));
  EXPECT_TRUE(at::equal(batch["depth"].squeeze(1), image.to(at::kFloat)));
}

TEST(Geometry, MasksMoveWithTheirImages) {
  const PixelArrays arrays = PixelArrays::of(segmented(kSize));
  for (const TransformPtr& transform :
       {random_crop_transform({.size = {4, 5}}, arrays), center_crop_transform({5, 3}, arrays),
        flip_transform(0.5, arrays), vertical_flip_transform(0.5, arrays)}) {
    const SampleSpec after = transform->spec(segmented(kSize));
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const Batch batch = moved(transform, seed);
      expect_together(batch);
      for (const auto& [name, array] : batch.leaves())
        EXPECT_EQ(array.sizes().slice(1), after.shapes.at(name));
    }
  }
}

TEST(Geometry, ResizedMasksHaveTheNearestPixels) {
  const auto resize = resize_transform({.size = ImageSize{14, 3}}, PixelArrays::of(segmented(kSize)));
  const Batch batch = moved(resize, 0);
  const at::Tensor rows = at::arange(14).div(2, "floor"), columns = at::arange(3).mul(3);
  EXPECT_TRUE(at::equal(batch["target"][0], rows.unsqueeze(1).mul(9).add(columns)));
}

TEST(Geometry, AddedPixelsOfMasksAreIgnored) {
  const auto crop = random_crop_transform({.size = {9, 11}, .padding = {{1, 1, 1, 1}}, .fill = 3},
                                          PixelArrays::of(segmented(kSize)));
  const Batch batch = moved(crop, 0);
  EXPECT_EQ(batch["target"][0][0][0].item<int64_t>(), kIgnoredTarget);
  EXPECT_EQ(batch["input"][0][0][0][0].item<int>(), 3);
  EXPECT_EQ(batch["depth"][0][0][0][0].item<float>(), 0);
  EXPECT_EQ(batch["target"][0][1][1].item<int64_t>(), 0);
  const at::Tensor shifted = at::tensor({2., 3., 6., 5., 1., 1., 10., 8.}, at::kFloat).view({2, 4});
  EXPECT_TRUE(at::equal(batch["boxes"][0], shifted));
}

TEST(Geometry, BoxesMoveWithTheirImages) {
  const Geometry half{.part = {1, 2, {4, 6}}, .result = {8, 3}, .mirrors_columns = true};
  const at::Tensor boxes = numbered(1, kSize)["boxes"][0];
  const at::Tensor want = at::tensor({1.5, 2., 3., 6., 0., 0., 3., 8.}, at::kFloat).view({2, 4});
  EXPECT_TRUE(at::equal(placed_boxes(boxes, half), want)) << placed_boxes(boxes, half);
}

std::string why(const TransformPtr& transform, const SampleSpec& samples) {
  return message_of<TransformError>([&] { transform->spec(samples); });
}

TEST(Geometry, OtherTransformsRefuseMasksAndBoxes) {
  SampleSpec samples = segmented(kSize);
  EXPECT_THAT(why(randaugment_transform({}), samples),
              HasSubstr("it moves the pixels of 'input' and not those"));
  samples.shapes.erase("target");
  samples.shapes.erase("depth");
  EXPECT_THAT(why(randaugment_transform({}), samples), HasSubstr("those of 'boxes'"));
  EXPECT_THAT(why(flip_transform(1), samples), HasSubstr("those of 'boxes'")) << "made without arrays";
  samples = segmented({8, 12});
  samples.shapes["quarter"] = {2, 3};
  samples.dtypes["quarter"] = at::kLong;
  EXPECT_THAT(why(flip_transform(1, PixelArrays::of(samples)), samples), HasSubstr("'quarter'"));
  for (const TransformPtr& transform :
       {color_jitter_transform({.brightness = {0.5, 1}}), gaussian_blur_transform({3, 3}, {1, 1}),
        random_erasing_transform({})})
    EXPECT_NO_THROW(transform->spec(segmented(kSize)));
}

TEST(Geometry, ImagesOfDifferingSizesGetOneWhereATransformSaysIt) {
  const SampleSpec any{
      {{"input", {-1, -1, 3}}, {"target", {}}}, 5, {{"input", at::kByte}, {"target", at::kLong}}};
  const auto after = [&](const TransformPtr& transform) { return transform->spec(any).shapes.at("input"); };
  const Shape same{-1, -1, 3};
  EXPECT_EQ(after(flip_transform(1)), same);
  EXPECT_EQ(after(resize_transform({.smaller_edge = 4})), same);
  EXPECT_EQ(after(randaugment_transform({})), same);
  EXPECT_EQ(after(resize_transform({.size = ImageSize{4, 5}})), (Shape{4, 5, 3}));
  EXPECT_EQ(after(random_crop_transform({.size = {4, 5}})), (Shape{4, 5, 3}));
  EXPECT_EQ(after(center_crop_transform({4, 5})), (Shape{4, 5, 3}));
  EXPECT_EQ(after(random_resized_crop_transform({.size = {4, 5}})), (Shape{4, 5, 3}));
}

// What is decoded in part, or at once with borders.
TEST(Geometry, APartIsPlacedAsTheWhole) {
  const at::Tensor image = numbered(1, kSize)["input"][0];
  const Geometry crop{.part = {1, 2, {4, 6}}, .result = {8, 3}, .mirrors_rows = true};
  Geometry bordered = crop;
  bordered.borders.push_back({.padding = {1, 1, 1, 1}});
  for (const Geometry& one : {crop, bordered}) {
    const Region part = needed_part(one, kSize).part;
    const at::Tensor decoded =
        image.narrow(0, part.top, part.size.height).narrow(1, part.left, part.size.width);
    EXPECT_TRUE(at::equal(placed_part(decoded, one), placed(image, one)));
  }
  EXPECT_EQ(needed_part(crop, kSize).part, crop.part);
  EXPECT_EQ(needed_part(crop, kSize).least, crop.result);
}

}  // namespace
}  // namespace tutti
