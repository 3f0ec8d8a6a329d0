#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "data/readers/catalog.h"
#include "data/readers/recipe_transforms.h"
#include "data/transforms/options.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// The tables of a recipe whose data section stands on lines 1 to 3.
Setting tables_of(const std::string& toml) {
  const Catalog catalog = train_data_catalog();
  const std::string data = "[data.train]\nkind = 'synthetic'\nbatch_size = 1\n";
  const Setting recipe = resolve(parse_recipe(data + toml, "r.toml"), std::span(&catalog, 1));
  return recipe.at("data").at("train").at("transforms");
}

std::string table(const std::string& keys) { return "[[data.train.transforms]]\n" + keys + "\n"; }

SampleSpec spec_of(const Shape& shape, at::ScalarType dtype = at::kByte, int64_t classes = 10) {
  return {{{"input", shape}}, classes, {{"input", dtype}}};
}

std::string why_not(const std::string& toml, const SampleSpec& samples) {
  return message_of<UserError>([&] { make_transforms(tables_of(toml), samples); });
}

constexpr const char* kToTensor = "[[data.train.transforms]]\nkind = 'to_tensor'\n";

TEST(MakeTransforms, EveryKindOfTheCatalogIsMade) {
  const std::map<std::string, std::string> keys = {{"random_crop", "size = 4"},
                                                   {"center_crop", "size = 4"},
                                                   {"resize", "size = 4"},
                                                   {"random_resized_crop", "size = 4"},
                                                   {"gaussian_blur", "kernel_size = 3"},
                                                   {"normalize", "mean = [0.5]\nstd = [0.5]"},
                                                   {"mask_tokens", "mask_token_id = 3"}};
  for (const std::string& kind : own_kinds(transform_catalog())) {
    SampleSpec samples = spec_of({8, 8, 3});
    if (kind == "normalize") samples = spec_of({3, 8, 8}, at::kFloat);
    if (kind == "mask_tokens" || kind == "next_token") samples = spec_of({8}, at::kLong);
    const auto given = keys.find(kind);
    const std::string more = given == keys.end() ? "" : given->second;
    const Transforms made = make_transforms(tables_of(table("kind = '" + kind + "'\n" + more)), samples);
    ASSERT_EQ(made.size(), 1u) << kind;
    EXPECT_EQ(made[0].name, kind);
  }
}

TEST(MakeTransforms, TransformsOfAKindHaveNumbersAndMoreThanAThousandAreRefused) {
  std::string many;
  for (int i = 0; i < 1000; ++i) many += table("kind = 'flip'");
  EXPECT_EQ(make_transforms(tables_of(many), spec_of({8, 8, 3})).back().name, "flip/999");
  EXPECT_THAT(why_not(many + table("kind = 'flip'"), spec_of({8, 8, 3})),
              HasSubstr("expected at most 1,000 transforms"));
}

TEST(MakeTransforms, ComeInOrderAndSecondsOfAKindHaveNumbers) {
  const Transforms made =
      make_transforms(tables_of(table("kind = 'flip'") + table("kind = 'random_crop'\nsize = [6, 5]") +
                                table("kind = 'flip'\np = 0.25") + kToTensor),
                      spec_of({8, 8, 3}));
  std::vector<std::string> names;
  for (const auto& one : made) names.push_back(one.name);
  EXPECT_EQ(names, (std::vector<std::string>{"flip", "random_crop", "flip/1", "to_tensor"}));
  EXPECT_EQ(spec_after(made, spec_of({8, 8, 3})).describe("input"), "float32 [3, 6, 5]");
}

TEST(MakeTransforms, ABadOrderIsAnErrorWithItsLine) {
  const std::string normalize = table("kind = 'normalize'\nmean = [0.5]\nstd = [0.5]");
  EXPECT_THAT(why_not(normalize + kToTensor, spec_of({8, 8, 3})),
              StartsWith("r.toml:5: data.train.transforms.0.kind = \"normalize\": expected float32"));
  EXPECT_THAT(why_not(std::string(kToTensor) + kToTensor, spec_of({8, 8, 3})),
              StartsWith("r.toml:7: data.train.transforms.1.kind = \"to_tensor\": expected images, uint8"));
}

TEST(MakeTransforms, AnUnfitValueIsNamedWithItsKey) {
  EXPECT_THAT(why_not(table("kind = 'center_crop'\nsize = [8, 9]"), spec_of({8, 8, 3})),
              StartsWith("r.toml:6: data.train.transforms.0.size = [8, 9]: the images are [8, 8]"));
  EXPECT_THAT(
      why_not(kToTensor + table("kind = 'normalize'\nmean = [0.5, 0.5]\nstd = [0.5]"), spec_of({8, 8, 3})),
      StartsWith("r.toml:8: data.train.transforms.1.mean = [0.5, 0.5]: the images have 3 channels"));
  EXPECT_THAT(why_not(table("kind = 'random_crop'\nsize = 4\nfill = 0.5"), spec_of({8, 8, 3})),
              HasSubstr("transforms.0.fill = 0.5: the images are uint8; expected an integer in [0, 255]"));
  EXPECT_THAT(why_not(table("kind = 'random_crop'\nsize = [1, 2, 3]"), spec_of({8, 8, 3})),
              HasSubstr("transforms.0.size = [1, 2, 3]: expected [height, width]"));
  EXPECT_THAT(why_not(table("kind = 'random_crop'\nsize = 4\npadding = [1, 2, 3]"), spec_of({8, 8, 3})),
              HasSubstr("transforms.0.padding = [1, 2, 3]: expected one number"));
  EXPECT_THAT(why_not(table("kind = 'resize'\nsize = [4, 4]\nmax_size = 9"), spec_of({8, 8, 3})),
              HasSubstr("transforms.0.max_size = 9: it needs a size of one number"));
  EXPECT_THAT(why_not(table("kind = 'resize'\nsize = 4\nmax_size = 4"), spec_of({8, 8, 3})),
              HasSubstr("transforms.0.max_size = 4: expected more than size, "));
  EXPECT_THAT(
      why_not(table("kind = 'mask_tokens'\nmask_token_id = 9\nvocab_size = 9"), spec_of({8}, at::kLong)),
      HasSubstr("transforms.0.vocab_size = 9: expected at least 10: the data has tokens up to 9"));
  EXPECT_THAT(why_not(table("kind = 'mask_tokens'\nmask_token_id = 9"), spec_of({8}, at::kLong, 0)),
              HasSubstr("transforms.0.vocab_size: the data does not say"));
}

TEST(MakeTransforms, OperationsOnAnImageHaveAnEnd) {
  for (const auto& [kind, key, most] :
       {std::tuple{"randaugment", "depth", "100"}, std::tuple{"augmix", "depth", "100"},
        std::tuple{"augmix", "width", "100"}, std::tuple{"cutout", "num_holes", "10000"}})
    EXPECT_THAT(
        why_not(table(std::string("kind = '") + kind + "'\n" + key + " = 1000000000"), spec_of({8, 8, 3})),
        AllOf(StartsWith(std::string("r.toml:6: data.train.transforms.0.") + key),
              HasSubstr("expected an integer"), HasSubstr(most)));
}

// Images of bytes [8, 8, 3] beside an array of that shape.
SampleSpec masked(const Shape& mask, const std::string& name = "target") {
  SampleSpec samples = spec_of({8, 8, 3});
  samples.shapes[name] = mask;
  samples.dtypes[name] = at::kLong;
  return samples;
}

TEST(MakeTransforms, ImagesDoNotMoveAwayFromTheirMasks) {
  for (const char* keys : {"kind = 'colout'", "kind = 'randaugment'", "kind = 'augmix'"})
    EXPECT_THAT(why_not(table(keys), masked({8, 8})),
                AllOf(StartsWith("r.toml:5: data.train.transforms.0.kind = "),
                      HasSubstr("not those of 'target', which is int64 [8, 8] a sample")))
        << keys;
  for (const Shape& mask : {Shape{4, 4}, Shape{2, 2}, Shape{12, 12}, Shape{16, 16}, Shape{3, 32, 32}})
    EXPECT_THAT(why_not(table("kind = 'flip'"), masked(mask)), HasSubstr("not those of 'target'"));
  EXPECT_THAT(why_not(table("kind = 'flip'"), masked({4, 4}, "depth")), HasSubstr("not those of 'depth'"));
  SampleSpec tensors = masked({4, 4});
  EXPECT_THAT(why_not(kToTensor + table("kind = 'flip'"), tensors), StartsWith("r.toml:7: "));
}

TEST(MakeTransforms, MasksAsLargeAsTheImageMoveWithIt) {
  for (const char* keys : {"kind = 'random_crop'\nsize = 4", "kind = 'center_crop'\nsize = 4",
                           "kind = 'resize'\nsize = [4, 4]", "kind = 'random_resized_crop'\nsize = 4"})
    for (const auto& [mask, after] :
         {std::pair(Shape{8, 8}, Shape{4, 4}), std::pair(Shape{8, 8, 2}, Shape{4, 4, 2}),
          std::pair(Shape{1, 8, 8}, Shape{1, 4, 4})}) {
      const SampleSpec samples = masked(mask);
      const Transforms made =
          make_transforms(tables_of(table(keys) + table("kind = 'flip'") + kToTensor), samples);
      EXPECT_EQ(spec_after(made, samples).shapes.at("target"), after) << keys;
    }
}

TEST(MakeTransforms, RangesHaveTwoEnds) {
  const auto why = [](const std::string& keys) { return why_not(table(keys), spec_of({8, 8, 3})); };
  EXPECT_THAT(why("kind = 'random_resized_crop'\nsize = 4\nscale = [0.5]"),
              HasSubstr("transforms.0.scale = [0.5]"));
  EXPECT_THAT(why("kind = 'random_resized_crop'\nsize = 4\nratio = [2, 1]"), HasSubstr("transforms.0.ratio"));
  EXPECT_THAT(why("kind = 'random_erasing'\nscale = [2, 1]"), HasSubstr("transforms.0.scale"));
  EXPECT_THAT(why("kind = 'random_erasing'\nvalue = [2, 1]"), HasSubstr("the images have 3 channels"));
  EXPECT_THAT(why("kind = 'random_erasing'\nvalue = 0.5"), HasSubstr("expected integers in [0, 255]"));
  EXPECT_THAT(why("kind = 'gaussian_blur'\nkernel_size = 4"), HasSubstr("expected odd numbers"));
  EXPECT_THAT(why("kind = 'gaussian_blur'\nkernel_size = 17"),
              HasSubstr("transforms.0.kernel_size = 17: the images are"));
  EXPECT_THAT(why("kind = 'gaussian_blur'\nkernel_size = 3\nsigma = [2, 1]"),
              HasSubstr("transforms.0.sigma"));
  EXPECT_THAT(why("kind = 'color_jitter'\nbrightness = [2, 1]"), HasSubstr("transforms.0.brightness"));
  EXPECT_THAT(why("kind = 'color_jitter'\nhue = 0.6"), HasSubstr("transforms.0.hue = 0.6"));
  EXPECT_THAT(why("kind = 'color_jitter'\nhue = -0.1"), HasSubstr("expected 0 or more"));
}

TEST(MakeTransforms, TransformsThatKeepPixelsInPlaceAcceptMasks) {
  for (const char* keys : {"kind = 'cutout'", "kind = 'to_tensor'", "kind = 'random_crop'\nsize = 8",
                           "kind = 'center_crop'\nsize = 8", "kind = 'resize'\nsize = 8",
                           "kind = 'colout'\np_row = 0\np_col = 0"})
    EXPECT_NO_THROW(make_transforms(tables_of(table(keys)), masked({8, 8}))) << keys;
  for (const Shape& other :
       {Shape{}, Shape{8}, Shape{3, 4}, Shape{5, 4, 3}, Shape{1, 1}, Shape{1, 4}, Shape{4, 1}, Shape{4, 16},
        Shape{4, 8}, Shape{1, 8, 2}, Shape{2, 4, 5}, Shape{3, 3}})
    EXPECT_NO_THROW(make_transforms(tables_of(table("kind = 'flip'")), masked(other)))
        << at::IntArrayRef(other);
}

TEST(MakeTransforms, PaddingIsOneTwoOrFourNumbers) {
  const auto shape = [](const std::string& padding, const std::string& size) {
    const Setting tables =
        tables_of(table("kind = 'random_crop'\npadding = " + padding + "\nsize = " + size));
    return spec_after(make_transforms(tables, spec_of({4, 4, 1})), spec_of({4, 4, 1})).shapes.at("input");
  };
  EXPECT_EQ(shape("2", "8"), (Shape{8, 8, 1}));
  EXPECT_EQ(shape("[1, 2]", "[8, 6]"), (Shape{8, 6, 1}));
  EXPECT_EQ(shape("[1, 2, 3, 4]", "[10, 8]"), (Shape{10, 8, 1}));
}

TEST(Merged, AddedTransformsStandBeforeToTensor) {
  const Transforms own = make_transforms(tables_of(table("kind = 'flip'") + kToTensor), spec_of({8, 8, 3}));
  Transforms added;
  append_once(added, "One", own[0].transform);
  append_once(added, "Two", own[0].transform);
  append_once(added, "One", own[0].transform);
  const auto names = [](const Transforms& transforms) {
    std::string all;
    for (const auto& one : transforms) all += one.name + " ";
    return all;
  };
  EXPECT_EQ(names(merged(own, added)), "flip One Two to_tensor ");
  EXPECT_EQ(names(merged({own[0]}, added)), "flip One Two ");
}

}  // namespace
}  // namespace tutti
