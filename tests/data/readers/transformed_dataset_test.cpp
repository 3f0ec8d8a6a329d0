#include "data/readers/transformed_dataset.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "data/readers/catalog.h"
#include "data/readers/recipe_transforms.h"
#include "data/readers/synthetic_dataset.h"
#include "data/transforms/image_transforms.h"
#include "data/transforms/tensor_transforms.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int64_t kImages = 40;

DatasetPtr images() {
  const at::Tensor pixels = at::arange(kImages * 8 * 8 * 3).view({kImages, 8, 8, 3}).to(at::kByte);
  return std::make_shared<const TensorDataset>(
      TensorTree::Children{{"input", pixels}, {"target", at::arange(kImages).remainder(10)}}, 10);
}

Transforms augmentation() {
  Transforms transforms;
  append(transforms, "random_crop", random_crop_transform({.size = {8, 8}, .padding = {{2, 2, 2, 2}}}));
  append(transforms, "flip", flip_transform(0.5));
  append(transforms, "to_tensor", to_tensor_transform());
  return transforms;
}

DatasetPtr augmented() {
  return std::make_shared<const TransformedDataset>(images(), augmentation(), "augmented");
}

std::vector<int64_t> all_of(const Dataset& data) {
  std::vector<int64_t> indices(static_cast<std::size_t>(data.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

TEST(TransformedDataset, HasTheTransformedLayoutAndTheSamplesBelow) {
  const DatasetPtr data = augmented();
  EXPECT_EQ(data->size(), kImages);
  EXPECT_EQ(data->spec().describe("input"), "float32 [3, 8, 8]");
  EXPECT_EQ(data->spec().classes, 10);
  const Batch batch = data->get(std::vector<int64_t>{7, 3}, {.seed = 1});
  EXPECT_EQ(batch["input"].sizes(), (at::IntArrayRef{2, 3, 8, 8}));
  EXPECT_TRUE(at::equal(batch["target"], at::tensor({7, 3})));
  EXPECT_EQ(data->order(1, 2, 3, true), images()->order(1, 2, 3, true));
}

TEST(TransformedDataset, NoSamplesHaveTheTransformedShape) {
  const Batch none = augmented()->get({}, {});
  EXPECT_EQ(none["input"].sizes(), (at::IntArrayRef{0, 3, 8, 8}));
  EXPECT_EQ(none["input"].scalar_type(), at::kFloat);
  EXPECT_EQ(none["target"].sizes(), (at::IntArrayRef{0}));
}

// The draws of a sample have the key (seed, name, epoch, sample).
TEST(TransformedDataset, DrawsAreThoseOfSeedNameEpochAndSample) {
  const DatasetPtr data = augmented(), below = images();
  const Batch batch = data->get(std::vector<int64_t>{31, 5}, {.seed = 7, .number = 3});
  for (const int64_t row : {0, 1}) {
    const int64_t sample = row == 0 ? 31 : 5;
    at::Tensor image = below->get({&sample, 1}, {})["input"][0];
    image = random_crop(image, {.size = {8, 8}, .padding = {{2, 2, 2, 2}}},
                        *make_draws(7, {"random_crop", 3, sample}));
    image = flip(image, 0.5, *make_draws(7, {"flip", 3, sample}));
    EXPECT_TRUE(at::equal(batch["input"][row], to_tensor(image)));
  }
}

TEST(TransformedDataset, AnotherEpochOrSeedIsDrawnAnew) {
  const DatasetPtr data = augmented();
  const auto input = [&](const Epoch& epoch) { return data->get(all_of(*data), epoch)["input"]; };
  const at::Tensor first = input({.seed = 7, .number = 0});
  EXPECT_TRUE(at::equal(input({.seed = 7, .number = 0}), first));
  EXPECT_FALSE(at::equal(input({.seed = 7, .number = 1}), first));
  EXPECT_FALSE(at::equal(input({.seed = 8, .number = 0}), first));
}

TEST(TransformedDataset, AnEpochHasTheSameSamplesOnAnyNumberOfRanks) {
  const DatasetPtr data = augmented();
  const auto epoch_of = [&](int world) {
    std::vector<at::Tensor> batches;
    Sampler::Plan plan{.samples = kImages, .global_batch = 12, .place = {.data_world = world}, .seed = 7};
    plan.loading.shuffle = true;
    const int64_t count = Sampler(plan).batches();
    for (int64_t batch = 0; batch < count; ++batch)
      for (plan.place.data_rank = 0; plan.place.data_rank < world; ++plan.place.data_rank) {
        const Sampler sampler(plan);
        batches.push_back(data->get(sampler.indices(*data, 2, batch), sampler.epoch(2))["input"]);
      }
    return at::cat(batches);
  };
  const at::Tensor alone = epoch_of(1);
  ASSERT_EQ(alone.size(0), kImages);
  for (const int world : {2, 4}) EXPECT_TRUE(at::equal(epoch_of(world), alone)) << world;
}

// Gives its own tensors, not copies.
class Lent final : public Dataset {
 public:
  int64_t size() const override { return pixels.size(0); }
  SampleSpec spec() const override { return {{{"input", {8, 8, 3}}}, 0, {{"input", at::kByte}}}; }
  Batch get(std::span<const int64_t> indices, const Epoch&) const override {
    return TensorTree::Children{{"input", pixels.narrow(0, indices.front(), std::ssize(indices))}};
  }
  uint64_t digest() const override { return 1; }

  at::Tensor pixels = at::arange(4 * 8 * 8 * 3).view({4, 8, 8, 3}).to(at::kByte);
};

TEST(TransformedDataset, LeavesTheSamplesBelowAsTheyAre) {
  const auto below = std::make_shared<const Lent>();
  const at::Tensor before = below->pixels.clone();
  Transforms transforms;
  append(transforms, "flip", flip_transform(1));
  append(transforms, "to_tensor", to_tensor_transform());
  append(transforms, "normalize", normalize_transform({0.5}, {0.5}));
  TransformedDataset(below, transforms, "").get(std::vector<int64_t>{1, 2}, {});
  TransformedDataset(below, {transforms[1]}, "").get(std::vector<int64_t>{1, 2}, {});
  EXPECT_TRUE(at::equal(below->pixels, before));
}

// The first transform takes the images; the second wants numbers in [0, 1].
TEST(TransformedDataset, ATransformOfTheRecipeThatFailsOnASampleIsAnErrorWithItsLine) {
  const Catalog catalog = train_data_catalog();
  const Setting recipe = resolve(parse_recipe("[data.train]\nkind = 'synthetic'\nbatch_size = 1\n"
                                              "[[data.train.transforms]]\nkind = 'flip'\n"
                                              "[[data.train.transforms]]\nkind = 'randaugment'\n",
                                              "r.toml"),
                                 std::span(&catalog, 1));
  const auto open = [&] {
    const TensorTree::Children sevens = {{"input", at::full({2, 3, 8, 8}, 7.0)}};
    with_recipe_transforms(recipe.at("data").at("train"), std::make_shared<const TensorDataset>(sevens));
  };
  EXPECT_THAT(message_of<UserError>(open),
              AllOf(StartsWith("r.toml:7: data.train.transforms.1.kind"), HasSubstr("[0, 1]")));
}

TEST(TransformedDataset, DigestIsOfDataAndTransforms) {
  const auto digest = [](const std::string& text) {
    return TransformedDataset(images(), augmentation(), text).digest();
  };
  EXPECT_EQ(digest("one"), digest("one"));
  EXPECT_NE(digest("one"), digest("two"));
  EXPECT_NE(digest(""), images()->digest());
}

// Adds one to all bytes.
class BrighterImages final : public ImageTransform {
  at::Tensor image(const at::Tensor& image, Draws&) const override { return image.add(1); }
  bool needs_bytes() const override { return true; }
};

TEST(WithTransforms, AddsBeforeToTensor) {
  Transforms to_tensor_alone, added;
  append(to_tensor_alone, "to_tensor", to_tensor_transform());
  append(added, "BrighterImages", std::make_shared<BrighterImages>());
  const DatasetPtr data =
      with_transforms(std::make_shared<const TransformedDataset>(images(), to_tensor_alone, ""), added);
  const std::vector<int64_t> rows = {4};
  EXPECT_TRUE(
      at::equal(data->get(rows, {})["input"][0], to_tensor(images()->get(rows, {})["input"][0].add(1))));
  EXPECT_EQ(spec_with(*augmented(), added).describe("input"), "float32 [3, 8, 8]");
}

TEST(WithTransforms, AddsLastWhereThereIsNoToTensor) {
  Transforms added;
  append(added, "BrighterImages", std::make_shared<BrighterImages>());
  const std::vector<int64_t> rows = {4};
  const at::Tensor pixels = images()->get(rows, {})["input"];
  EXPECT_TRUE(at::equal(with_transforms(images(), added)->get(rows, {})["input"], pixels.add(1)));
  EXPECT_EQ(spec_with(*images(), added).describe("input"), "uint8 [8, 8, 3]");
  const DatasetPtr as_it_was = images();
  EXPECT_EQ(with_transforms(as_it_was, {}), as_it_was);
}

TEST(WithTransforms, AnUnfitTransformIsNamed) {
  const auto tensors =
      std::make_shared<const SyntheticDataset>(SyntheticDataset::Options{.shape = {3, 8, 8}});
  Transforms added;
  append(added, "BrighterImages", std::make_shared<BrighterImages>());
  EXPECT_THAT(message_of<UserError>([&] { with_transforms(tensors, added); }),
              HasSubstr("BrighterImages: expected images, uint8 [height, width, channels]; here"));
  EXPECT_THAT(message_of<UserError>([&] { spec_with(*tensors, added); }), HasSubstr("BrighterImages: "));
}

}  // namespace
}  // namespace tutti
