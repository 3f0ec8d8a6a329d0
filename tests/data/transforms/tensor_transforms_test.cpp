#include "data/transforms/tensor_transforms.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/transforms/image_transforms.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

SampleSpec samples_like(const Shape& shape, at::ScalarType dtype) {
  return {{{"input", shape}}, 10, {{"input", dtype}}};
}

const RowDraws kNoDraws = [](int64_t) -> std::unique_ptr<Draws> {
  throw std::logic_error("nothing is drawn");
};

// Each number is divided by 255 in float32.
TEST(ToTensor, DividesBytesAndPutsChannelsFirst) {
  const at::Tensor image = at::arange(5 * 4 * 3).view({5, 4, 3}).mul(4).to(at::kByte);
  const at::Tensor tensor = to_tensor(image);
  ASSERT_EQ(tensor.sizes(), (at::IntArrayRef{3, 5, 4}));
  ASSERT_EQ(tensor.scalar_type(), at::kFloat);
  EXPECT_TRUE(tensor.is_contiguous());
  for (int64_t c = 0; c < 3; ++c)
    EXPECT_EQ(tensor[c][2][1].item<float>(), static_cast<float>(image[2][1][c].item<int>()) / 255.0F);
  EXPECT_EQ(to_tensor(image.select(2, 0)).sizes(), (at::IntArrayRef{1, 5, 4}));
  EXPECT_TRUE(at::equal(to_tensor(image.select(2, 0))[0], tensor[0]));
}

TEST(ToTensor, OfABatchIsThatOfItsImages) {
  const at::Tensor images = at::randint(256, {4, 5, 6, 3}).to(at::kByte);
  for (const at::Tensor& stack : {images, images.select(3, 0)}) {
    Batch batch = TensorTree::Children{{"input", stack}, {"target", at::arange(4)}};
    to_tensor_transform()->apply(batch, kNoDraws);
    for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(at::equal(batch["input"][i], to_tensor(stack[i])));
    EXPECT_TRUE(at::equal(batch["target"], at::arange(4)));
  }
}

TEST(ToTensor, MakesFloatsOfBytes) {
  const SampleSpec after = to_tensor_transform()->spec(samples_like({5, 6, 3}, at::kByte));
  EXPECT_EQ(after.describe("input"), "float32 [3, 5, 6]");
  EXPECT_EQ(to_tensor_transform()->spec(samples_like({5, 6}, at::kByte)).describe("input"),
            "float32 [1, 5, 6]");
  const auto why = message_of<TransformError>([&] { to_tensor_transform()->spec(after); });
  EXPECT_THAT(why,
              AllOf(HasSubstr("expected images, uint8"), HasSubstr("here 'input' is float32 [3, 5, 6]")));
}

TEST(Normalize, SubtractsTheMeanAndDividesByTheDeviation) {
  const at::Tensor tensor = at::rand({2, 3, 4});
  const at::Tensor normal = normalize(tensor, {0.25, 0.5}, {2.0, 3.0});
  for (int64_t c = 0; c < 2; ++c) {
    const float mean = c == 0 ? 0.25F : 0.5F, deviation = c == 0 ? 2.0F : 3.0F;
    EXPECT_EQ(normal[c][1][2].item<float>(), (tensor[c][1][2].item<float>() - mean) / deviation);
  }
  EXPECT_TRUE(at::equal(normalize(tensor, {0.5}, {2.0}), (tensor - 0.5) / 2.0)) << "one for all";
}

TEST(Normalize, LeavesWhatItIsGivenAsItIs) {
  const at::Tensor tensors = at::rand({2, 1, 3, 4}), before = tensors.clone();
  Batch batch = TensorTree::Children{{"input", tensors}};
  normalize_transform({0.5}, {2.0})->apply(batch, kNoDraws);
  EXPECT_TRUE(at::equal(tensors, before));
  EXPECT_TRUE(at::equal(batch["input"], (before - 0.5) / 2.0));
}

TEST(Normalize, NeedsTensorsAndANumberForEachChannel) {
  const auto blamed = [](const TransformPtr& transform, const SampleSpec& samples) {
    try {
      transform->spec(samples);
    } catch (const TransformError& error) {
      return error.option + ": " + error.what();
    }
    return std::string("none");
  };
  const SampleSpec tensors = samples_like({3, 8, 8}, at::kFloat);
  EXPECT_EQ(blamed(normalize_transform({0.5}, {1, 2, 3}), tensors), "none");
  EXPECT_EQ(blamed(normalize_transform({0.5, 0.5}, {1}), tensors),
            "mean: the images have 3 channels; expected a number for each, or one for all");
  EXPECT_THAT(blamed(normalize_transform({0.5}, {1, 1}), tensors), HasSubstr("std: the images have 3"));
  EXPECT_THAT(
      blamed(normalize_transform({0.5}, {1}), samples_like({8, 8, 3}, at::kByte)),
      AllOf(HasSubstr("kind: "), HasSubstr("uint8 [8, 8, 3] a sample, which to_tensor turns into that")));
  EXPECT_THAT(blamed(normalize_transform({0.5}, {1}), samples_like({64}, at::kFloat)), HasSubstr("kind: "));
}

}  // namespace
}  // namespace tutti
