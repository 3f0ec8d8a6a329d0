#include "data/transforms/stored_images.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/transforms/tensor_transforms.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

SampleSpec of(const Shape& shape, at::ScalarType dtype) {
  return {{{"input", shape}}, 10, {{"input", dtype}}};
}

// A batch whose samples are as the transform said that they would be.
at::Tensor transformed(const TransformPtr& transform, const at::Tensor& samples) {
  const Shape shape(samples.sizes().begin() + 1, samples.sizes().end());
  const SampleSpec said = transform->spec(of(shape, samples.scalar_type()));
  Batch batch = TensorTree::Children{{"input", samples}};
  transform->apply(batch,
                   [](int64_t) -> std::unique_ptr<Draws> { throw std::logic_error("nothing is drawn"); });
  EXPECT_EQ(Shape(batch["input"].sizes().begin() + 1, batch["input"].sizes().end()), said.shapes.at("input"));
  EXPECT_EQ(batch["input"].scalar_type(), said.dtypes.at("input"));
  EXPECT_TRUE(batch["input"].is_contiguous());
  return batch["input"];
}

const at::Tensor kBytes = at::arange(2 * 4 * 5 * 3).mul(2).view({2, 4, 5, 3}).to(at::kByte);

TEST(StoredImages, NumbersAreThoseOfToTensorAndNormalize) {
  const std::vector<double> mean = {0.5, 0.25, 0.125}, std = {0.2, 0.3, 0.4};
  const at::Tensor want = normalize(to_tensor(kBytes[1]), mean, std);
  EXPECT_TRUE(at::equal(transformed(pixels_to_floats_transform({{}, mean, std}), kBytes)[1], want));
  EXPECT_TRUE(at::equal(transformed(pixels_to_floats_transform({}), kBytes)[1], to_tensor(kBytes[1])));
}

TEST(StoredImages, InputIsScaledThenCentredThenDivided) {
  const at::Tensor floats = transformed(pixels_to_floats_transform({{2}, {1, 2, 3}, {4}}), kBytes);
  EXPECT_EQ(floats[1][2][3][4].item<float>(), (2 * kBytes[1][3][4][2].item<float>() - 3) / 4);
  const at::Tensor given = at::rand({2, 3, 4, 5});
  EXPECT_TRUE(at::equal(transformed(pixels_to_floats_transform({{}, {0.5}, {}}), given), given.sub(0.5)));
  const at::Tensor words = at::arange(2 * 3 * 4 * 5).view({2, 3, 4, 5});
  EXPECT_TRUE(
      at::equal(transformed(pixels_to_floats_transform({{}, {}, {2}}), words), words.to(at::kFloat).div(2)));
}

TEST(StoredImages, ImagesWithoutChannelsGetOne) {
  EXPECT_EQ(transformed(pixels_to_floats_transform({}), kBytes.select(3, 0)).sizes(),
            (at::IntArrayRef{2, 1, 4, 5}));
  EXPECT_EQ(transformed(pixels_to_floats_transform({}), kBytes.view({2, 60})).sizes(),
            (at::IntArrayRef{2, 60}));
}

TEST(StoredImages, LayoutIsThatOfTransformsThenThatOfModels) {
  const at::Tensor planes = kBytes.movedim(-1, 1).contiguous(), floats = kBytes.to(at::kFloat);
  EXPECT_TRUE(at::equal(transformed(layout_transform(ImageLayout::kNCHW), planes), kBytes));
  EXPECT_TRUE(at::equal(transformed(layout_transform(ImageLayout::kNHWC), kBytes), kBytes));
  EXPECT_TRUE(at::equal(transformed(layout_transform(ImageLayout::kNHWC), floats), planes.to(at::kFloat)));
  EXPECT_TRUE(at::equal(transformed(layout_transform(ImageLayout::kNCHW), floats), floats));
}

TEST(StoredImages, AnUnfitImageIsBlamedOnItsKey) {
  const auto why = [](const PixelNumbers& numbers, const SampleSpec& samples) {
    try {
      pixels_to_floats_transform(numbers)->spec(samples);
    } catch (const TransformError& error) {
      return error.option + ": " + error.what();
    }
    return std::string("it was taken");
  };
  const SampleSpec images = of({4, 5, 3}, at::kByte);
  EXPECT_EQ(why({{1}, {1, 2, 3}, {1}}, images), "it was taken");
  EXPECT_THAT(why({{}, {1, 2}, {}}, images), HasSubstr("mean: the images have 3 channels"));
  EXPECT_THAT(why({{1, 2, 3, 4}, {}, {}}, images), HasSubstr("scale: "));
  EXPECT_THAT(why({{}, {}, {1, 2}}, of({7}, at::kFloat)), HasSubstr("std: expected one number"));
  EXPECT_THAT(why({}, of({3, 32, 32}, at::kByte)),
              AllOf(HasSubstr("layout: 'input' is uint8 [3, 32, 32]"), HasSubstr("layout = \"NCHW\"")));
  EXPECT_THAT(
      message_of<TransformError>([] { layout_transform(ImageLayout::kNHWC)->spec(of({7}, at::kByte)); }),
      HasSubstr("expected images with channels; here 'input' is uint8 [7]"));
}

}  // namespace
}  // namespace tutti
