#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/transforms/augmentations/augmix.h"
#include "data/transforms/augmentations/randaugment.h"
#include "data/transforms/pixels.h"
#include "runtime/error.h"
#include "tests/data/transforms/test_images.h"

namespace tutti {
namespace {

template <class Options>
at::Tensor augmented(const at::Tensor& image, const Options& options, int64_t place = 0) {
  const auto draws = make_draws(11, {.name = "augmented", .place = place});
  if constexpr (std::is_same_v<Options, AugMixOptions>)
    return augmix_image(image, options, *draws);
  else
    return randaugment_image(image, options, *draws);
}

at::Tensor noise_image() { return test_images().at(13); }

template <class Options>
class AugmentedImages : public testing::Test {};
using BothOptions = testing::Types<RandAugmentOptions, AugMixOptions>;
TYPED_TEST_SUITE(AugmentedImages, BothOptions);

TYPED_TEST(AugmentedImages, AreTheSameForTheSameKey) {
  const at::Tensor image = noise_image(), before = image.clone();
  EXPECT_TRUE(at::equal(augmented(image, TypeParam{}), augmented(image, TypeParam{})));
  EXPECT_FALSE(at::equal(augmented(image, TypeParam{}), augmented(image, TypeParam{}, 1)));
  EXPECT_TRUE(at::equal(image, before));
}

TYPED_TEST(AugmentedImages, OfFloatsAreThoseOfTheirPixels) {
  const at::Tensor image = noise_image();
  const at::Tensor floats = from_pixels(image), before = floats.clone();
  for (int64_t place = 0; place < 10; ++place)
    EXPECT_TRUE(
        at::equal(augmented(floats, TypeParam{}, place), from_pixels(augmented(image, TypeParam{}, place))));
  EXPECT_TRUE(at::equal(floats, before));
}

TYPED_TEST(AugmentedImages, OfABatchHaveDrawsOfTheirOwn) {
  const at::Tensor batch = from_pixels(noise_image()).unsqueeze(0).repeat({3, 1, 1, 1});
  const at::Tensor result = augmented(batch, TypeParam{});
  ASSERT_EQ(result.sizes(), batch.sizes());
  EXPECT_TRUE(at::equal(result[0], augmented(batch[0], TypeParam{})));
  EXPECT_FALSE(at::equal(result[0], result[1]));
  EXPECT_FALSE(at::equal(result[1], result[2]));
  EXPECT_EQ(augmented(batch.narrow(0, 0, 0), TypeParam{}).sizes(), batch.narrow(0, 0, 0).sizes());
}

TYPED_TEST(AugmentedImages, OfAnySizeAndOfGrayKeepTheirShape) {
  for (const at::Tensor& image : test_images()) {
    for (const char* set : {"all", "safe", "original"}) {
      TypeParam options;
      options.augmentation_set = set;
      for (int64_t place = 0; place < 8; ++place)
        EXPECT_EQ(augmented(image, options, place).sizes(), image.sizes());
    }
  }
}

TYPED_TEST(AugmentedImages, RefuseOtherTensors) {
  EXPECT_THROW(augmented(at::zeros({8, 8}), TypeParam{}), UserError);
  EXPECT_THROW(augmented(at::zeros({4, 8, 8}), TypeParam{}), UserError);
  EXPECT_THROW(augmented(at::zeros({8, 8, 3}, at::kLong), TypeParam{}), UserError);
}

TYPED_TEST(AugmentedImages, RefuseOptionsOutOfRange) {
  for (const int64_t severity : {-1, 11}) {
    TypeParam options;
    options.severity = severity;
    EXPECT_THROW(augmented(noise_image(), options), UserError) << severity;
  }
  TypeParam options;
  options.augmentation_set = "most";
  EXPECT_THROW(augmented(noise_image(), options), UserError);
}

template <class Options>
TransformPtr transform_of(const Options& options) {
  if constexpr (std::is_same_v<Options, AugMixOptions>)
    return augmix_transform(options);
  else
    return randaugment_transform(options);
}

// By transforms, of bytes with and without channels and of floats of any dtype.
TYPED_TEST(AugmentedImages, InDatasetsAreThoseOfTheFunction) {
  const at::Tensor color = noise_image(), gray = color.narrow(2, 0, 1).contiguous();
  const RowDraws draws = [](int64_t row) { return make_draws(11, {.name = "augmented", .place = row}); };
  const auto first = [&](const at::Tensor& image) {
    Batch batch = TensorTree::Children{{kInputArray, image.unsqueeze(0)}};
    transform_of(TypeParam{})->apply(batch, draws);
    return batch[kInputArray][0];
  };
  EXPECT_TRUE(at::equal(first(color), augmented(color, TypeParam{})));
  EXPECT_TRUE(at::equal(first(gray.squeeze(2)), augmented(gray, TypeParam{}).squeeze(2)));
  EXPECT_TRUE(at::equal(first(from_pixels(color)), augmented(from_pixels(color), TypeParam{})));
  EXPECT_EQ(first(from_pixels(color).to(at::kDouble)).scalar_type(), at::kDouble);
  EXPECT_THROW(first(from_pixels(color) - 0.5), UserError);
}

TYPED_TEST(AugmentedImages, InDatasetsKeepTheirSizeAndHaveThreeChannelsOrOne) {
  const TransformPtr transform = transform_of(TypeParam{});
  for (const Shape& shape : {Shape{8, 6, 3}, Shape{8, 6, 1}, Shape{8, 6}}) {
    const SampleSpec samples{{{kInputArray, shape}}, 10, {{kInputArray, at::kByte}}};
    EXPECT_EQ(transform->spec(samples).shapes.at(kInputArray), shape);
  }
  const SampleSpec of_two{{{kInputArray, {8, 6, 2}}}, 10, {{kInputArray, at::kByte}}};
  EXPECT_THROW(transform->spec(of_two), TransformError);
}

TEST(RandAugment, OfDepthZeroIsACopy) {
  const at::Tensor image = noise_image();
  const at::Tensor result = augmented(image, RandAugmentOptions{.depth = 0});
  EXPECT_TRUE(at::equal(result, image));
  EXPECT_NE(result.data_ptr(), image.data_ptr());
  EXPECT_THROW(check_options(RandAugmentOptions{.depth = -1}), UserError);
}

TEST(AugMix, RefusesWidthsAndAlphasOutOfRange) {
  EXPECT_NO_THROW(check_options(AugMixOptions{.depth = 0, .width = 1, .alpha = 0.01}));
  EXPECT_THROW(check_options(AugMixOptions{.width = 0}), UserError);
  EXPECT_THROW(check_options(AugMixOptions{.alpha = 0}), UserError);
  EXPECT_THROW(check_options(AugMixOptions{.alpha = -1}), UserError);
}

}  // namespace
}  // namespace tutti
