#include "data/readers/recipe_transforms.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "data/readers/catalog.h"
#include "data/readers/synthetic_dataset.h"
#include "data/readers/transformed_dataset.h"
#include "data/transforms/tensor_transforms.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kFlip = "[[data.train.transforms]]\nkind = 'flip'\np = 1\n";
constexpr const char* kToTensor = "[[data.train.transforms]]\nkind = 'to_tensor'\n";

Setting section_of(const std::string& keys) {
  const Catalog catalog = train_data_catalog();
  return resolve(parse_recipe("[data.train]\nkind = 'synthetic'\nbatch_size = 1\n" + keys, "r.toml"),
                 std::span(&catalog, 1))
      .at("data")
      .at("train");
}

const at::Tensor kPixels = at::arange(4 * 6 * 5 * 3).remainder(251).view({4, 6, 5, 3}).to(at::kByte);
const at::Tensor kTargets = at::tensor({0, 7, 255, -100}, at::kLong);

DatasetPtr data_of(const at::Tensor& input, const std::string& keys, int64_t ignore_index = kIgnoredTarget) {
  const TensorTree::Children arrays = {{"input", input}, {"target", kTargets}};
  return with_recipe_transforms(section_of(keys), std::make_shared<const TensorDataset>(arrays, 10), "",
                                ignore_index);
}

Batch third(const DatasetPtr& data) { return data->get(std::vector<int64_t>{2}, {}); }

std::string why(const at::Tensor& input, const std::string& keys) {
  return message_of<UserError>([&] { data_of(input, keys); });
}

TEST(RecipeTransforms, LayoutComesFirstAndNumbersLast) {
  const at::Tensor flipped = to_tensor(kPixels[2].flip({1}));
  for (const bool planes : {false, true}) {
    const std::string layout = std::string("layout = '") + (planes ? "NCHW" : "NHWC") + "'\n";
    const at::Tensor stored = planes ? kPixels.movedim(-1, 1).contiguous() : kPixels;
    const auto data = data_of(stored, layout + "mean = [0.1, 0.2, 0.3]\nstd = 0.5\n" + kFlip);
    EXPECT_EQ(data->spec().describe("input"), "float32 [3, 6, 5]");
    EXPECT_TRUE(at::equal(third(data)["input"][0], normalize(flipped, {0.1, 0.2, 0.3}, {0.5})));
  }
}

TEST(RecipeTransforms, Float64AndIntegersAreFloat32WhenTheyAreNormalized) {
  const at::Tensor times = 1'700'000'000 + 7 * at::arange(4).view({4, 1});
  for (const at::Tensor& stored : {times, times.to(at::kDouble)}) {
    const DatasetPtr data = data_of(stored, "mean = 1.7e9\nstd = 7.0\n");
    EXPECT_EQ(data->spec().describe("input"), "float32 [1]");
    EXPECT_TRUE(at::equal(third(data)["input"], at::full({1, 1}, 2.F)));
  }
}

TEST(RecipeTransforms, LabelsFromFirstClassOnAreNumberedFrom0) {
  const at::Tensor labels = at::tensor({1, 3, -100, 255}, at::kLong);
  const auto of = [](const at::Tensor& target, int64_t classes, int64_t ignore_index = kIgnoredTarget) {
    const TensorTree::Children arrays = {{"input", kPixels}, {"target", target}};
    return with_recipe_transforms(section_of("first_class = 1\n"),
                                  std::make_shared<const TensorDataset>(arrays, classes), "", ignore_index);
  };
  const DatasetPtr data = of(labels, 4, 255);
  EXPECT_EQ(data->spec().classes, 3);
  const std::vector<int64_t> all = {0, 1, 2, 3};
  EXPECT_TRUE(at::equal(data->get(all, {})["target"], at::tensor({0, 2, -100, -100}, at::kLong)));
  const auto error = [&](const at::Tensor& target, int64_t classes) {
    return message_of<UserError>([&] { of(target, classes); });
  };
  EXPECT_THAT(error(kTargets, 256), HasSubstr("first_class = 1: a label below first_class = 1"));
  EXPECT_THAT(error(labels, 1), HasSubstr("first_class = 1: the labels are below 1"));
  EXPECT_THAT(error(at::rand({4}), 0), HasSubstr("targets to number from 0 are integers"));
}

TEST(RecipeTransforms, BytesOfAGivenLayoutBecomeFloats) {
  EXPECT_TRUE(at::equal(third(data_of(kPixels, "layout = 'NHWC'\n"))["input"][0], to_tensor(kPixels[2])));
  const auto once = data_of(kPixels, std::string("layout = 'NHWC'\n") + kToTensor);
  EXPECT_TRUE(at::equal(third(once)["input"][0], to_tensor(kPixels[2])));
  EXPECT_EQ(data_of(kPixels, "")->spec().describe("input"), "uint8 [6, 5, 3]");
}

TEST(RecipeTransforms, BytesInPlanesAreSeenByTheirChannels) {
  const at::Tensor planes = kPixels.movedim(-1, 1).contiguous();
  for (const std::string keys : {"mean = [0.1, 0.2, 0.3]\n", "std = 0.5\n", kToTensor, kFlip}) {
    const DatasetPtr seen = data_of(planes, keys), told = data_of(planes, "layout = 'NCHW'\n" + keys);
    if (keys != kFlip) EXPECT_TRUE(at::equal(third(seen)["input"], third(told)["input"])) << keys;
    if (keys != kFlip) EXPECT_EQ(seen->digest(), told->digest());
    EXPECT_EQ(third(seen)["input"].size(1), keys == kFlip ? 6 : 3);
  }
  EXPECT_EQ(data_of(planes, "")->spec().describe("input"), "uint8 [3, 6, 5]") << "nothing asks for images";
  const at::Tensor either = kPixels.slice(1, 0, 3);
  EXPECT_EQ(data_of(either, "scale = 1\n")->spec().describe("input"), "float32 [3, 3, 5]");
}

// Adds one to all bytes.
class Brighter final : public ImageTransform {
  at::Tensor image(const at::Tensor& image, Draws&) const override { return image.add(1); }
  bool needs_bytes() const override { return true; }
};

TEST(RecipeTransforms, NumbersComeAfterWhatAlgorithmsAdd) {
  const DatasetPtr data =
      with_transforms(data_of(kPixels, "scale = 1\n"), {{"b", std::make_shared<Brighter>()}});
  EXPECT_TRUE(at::equal(third(data)["input"][0], kPixels[2].add(1).movedim(-1, 0).to(at::kFloat)));
}

TEST(RecipeTransforms, ErrorsNameTheKey) {
  EXPECT_THAT(why(kPixels, "mean = [0.1, 0.2]\n"),
              AllOf(StartsWith("r.toml:4: data.train.mean = [0.1, 0.2]: "), HasSubstr("3 channels")));
  EXPECT_THAT(why(kPixels, std::string("std = 2\n") + kToTensor),
              AllOf(StartsWith("r.toml:4: data.train.std = 2"), HasSubstr("to_tensor has made float32")));
  EXPECT_THAT(why(kPixels.select(3, 0), "layout = 'NHWC'\n"),
              AllOf(StartsWith("r.toml:4: data.train.layout = \"NHWC\": "), HasSubstr("with channels")));
  EXPECT_THAT(why(kPixels.repeat({1, 1, 1, 2}), "scale = 1\n"),
              AllOf(StartsWith("r.toml:4: data.train.scale = 1"), HasSubstr("say layout = \"NCHW\"")));
  EXPECT_THAT(why(kPixels, "layout = 'NCHW'\n"),
              AllOf(HasSubstr("'input' is uint8 [6, 5, 3] a sample"), HasSubstr("needs no layout")));
  EXPECT_THAT(why(kPixels, "mean = []\n"), HasSubstr("r.toml:4: data.train.mean = []: expected a number"));
}

TEST(RecipeTransforms, IgnoredTargetsBecomeThatOfLosses) {
  const auto all = [](const DatasetPtr& data) {
    return data->get(std::vector<int64_t>{0, 1, 2, 3}, {})["target"];
  };
  EXPECT_TRUE(at::equal(all(data_of(kPixels, "", 255)), at::tensor({0, 7, -100, -100}, at::kLong)));
  EXPECT_TRUE(at::equal(all(data_of(kPixels, "")), kTargets));
  const TensorTree::Children floats = {{"input", kPixels}, {"target", at::ones({4})}};
  const auto refused = [&] {
    with_recipe_transforms(section_of(""), std::make_shared<const TensorDataset>(floats), "", 255);
  };
  EXPECT_THAT(message_of<UserError>(refused), HasSubstr("'target' is float32 number"));
}

TEST(RecipeTransforms, DigestIsOfAllKeys) {
  std::set<uint64_t> digests;
  for (const char* keys : {"", "layout = 'NHWC'\n", "scale = 1\n", "layout = 'NHWC'\nscale = 1\n",
                           "scale = 2\n", "mean = 1\n", "std = 1\n"})
    digests.insert(data_of(kPixels, keys)->digest());
  digests.insert(data_of(kPixels, "", 255)->digest());
  EXPECT_EQ(digests.size(), 8u);
}

}  // namespace
}  // namespace tutti
