#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/transforms/augmentations/colout.h"
#include "data/transforms/augmentations/cutout.h"

namespace tutti {
namespace {

// Images that count their pixels, all rows and columns with different numbers, none of them 0.
at::Tensor counted_bytes(int64_t images) {
  return (at::arange(48) + 1)
      .view({6, 8, 1})
      .expand({6, 8, 3})
      .to(at::kByte)
      .unsqueeze(0)
      .expand({images, 6, 8, 3});
}

Batch transformed(const TransformPtr& transform, const at::Tensor& images) {
  Batch batch = TensorTree::Children{{kInputArray, images}};
  transform->apply(batch, [](int64_t row) { return make_draws(3, {.name = "transform", .place = row}); });
  return batch;
}

SampleSpec spec_of_images(const Shape& shape, at::ScalarType dtype) {
  return {{{kInputArray, shape}}, 10, {{kInputArray, dtype}}};
}

TEST(DroppedPixels, ColOutDropsOthersOfEachImage) {
  const TransformPtr transform = colout_transform(0.5, 0.25);
  const at::Tensor dropped = transformed(transform, counted_bytes(4))[kInputArray];
  ASSERT_EQ(dropped.sizes(), (std::vector<int64_t>{4, 3, 6, 3}));
  EXPECT_EQ(dropped.scalar_type(), at::kByte);
  EXPECT_FALSE(at::equal(dropped[0], dropped[1]));
  EXPECT_TRUE(at::equal(dropped.select(3, 0), dropped.select(3, 2)));
  EXPECT_TRUE((dropped.select(3, 0).to(at::kLong).diff(1, 2) > 0).all().item<bool>());
  EXPECT_EQ(transform->spec(spec_of_images({6, 8, 3}, at::kByte)).shapes[kInputArray], (Shape{3, 6, 3}));
}

TEST(DroppedPixels, BytesAndTensorsLoseTheSame) {
  const at::Tensor bytes = counted_bytes(2), floats = bytes.movedim(3, 1).to(at::kFloat);
  for (const TransformPtr& transform : {colout_transform(0.5, 0.25), cutout_transform({.num_holes = 2})}) {
    const at::Tensor of_bytes = transformed(transform, bytes)[kInputArray];
    const at::Tensor of_floats = transformed(transform, floats)[kInputArray];
    EXPECT_TRUE(at::equal(of_bytes.movedim(3, 1).to(at::kFloat), of_floats));
  }
}

TEST(DroppedPixels, CutOutCutsElsewhereInEachImage) {
  const at::Tensor cut = transformed(cutout_transform({.length = 0.5}), counted_bytes(8))[kInputArray];
  EXPECT_EQ(cut.sizes(), counted_bytes(8).sizes());
  EXPECT_FALSE(at::equal(cut[0], cut[1]));
  const at::Tensor holes = cut.eq(0).select(3, 1).sum(std::vector<int64_t>{1, 2});
  EXPECT_GT(holes.min().item<int64_t>(), 0);
  EXPECT_LE(holes.max().item<int64_t>(), 4);  // a square of side 3 loses a pixel
}

TEST(DroppedPixels, ADroppedImageIsAnErrorOfItsKey) {
  const auto blamed = [](double p_row, double p_col) -> std::string {
    try {
      colout_transform(p_row, p_col)->spec(spec_of_images({3, 6, 8}, at::kFloat));
    } catch (const TransformError& error) {
      return error.option;
    }
    return "";
  };
  EXPECT_EQ(blamed(0.9, 0.0), "p_row");
  EXPECT_EQ(blamed(0.0, 0.9), "p_col");
  EXPECT_EQ(blamed(0.8, 0.8), "");
}

}  // namespace
}  // namespace tutti
