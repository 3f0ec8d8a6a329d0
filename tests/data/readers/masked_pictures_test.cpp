#include "data/readers/pictures/masked_pictures.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "data/readers/catalog.h"
#include "data/readers/class_names.h"
#include "data/readers/make_dataset.h"
#include "io/formats/png.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "tests/data/readers/image_samples.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

at::Tensor mask_sample(const std::string& name) { return decode_mask(bytes_of(encoded_sample(name))); }

std::string mask_error(const std::string& name) {
  return message_of<UserError>([&] { mask_sample(name); });
}

// The palette of a PNG file: [colors, 3].
at::Tensor palette_of(const std::string& file) {
  const std::size_t at = file.find("PLTE");
  const auto length = static_cast<uint8_t>(file[at - 1]) + 256 * static_cast<uint8_t>(file[at - 2]);
  std::vector<uint8_t> bytes(file.begin() + static_cast<int64_t>(at) + 4,
                             file.begin() + static_cast<int64_t>(at) + 4 + length);
  return at::tensor(bytes).view({-1, 3});
}

TEST(DecodeMask, ValuesAreIndexesOfThePalette) {
  const at::Tensor values = mask_sample("palette_19x37.png");
  const at::Tensor colors = palette_of(encoded_sample("palette_19x37.png")).index({values.to(at::kLong)});
  EXPECT_TRUE(at::equal(colors, decoded_sample("palette_19x37.png")));
  EXPECT_GT(values.max().item<int64_t>(), 1);
}

TEST(DecodeMask, GrayIsAsStored) {
  for (const auto& [name, scale] : {std::pair("gray_19x37.png", 1),
                                    {"gray4_19x37.png", 17},
                                    {"gray2_19x37.png", 85},
                                    {"bit_19x37.png", 255},
                                    {"gray_19x37.bmp", 1}})
    EXPECT_TRUE(at::equal(mask_sample(name) * scale, decoded_sample(name).select(2, 0))) << name;
}

TEST(DecodeMask, ColorsAndLossyFormatsAreRefused) {
  EXPECT_THAT(mask_error("rgb_19x37.png"), HasSubstr("its pixels are colors"));
  EXPECT_THAT(mask_error("gray_alpha_19x37.png"), HasSubstr("its pixels are colors"));
  EXPECT_THAT(mask_error("gray16_19x37.png"), HasSubstr("16 bits"));
  EXPECT_THAT(mask_error("rgb_19x37.bmp"), HasSubstr("in colors"));
  EXPECT_THAT(mask_error("gray_19x37.jpg"), HasSubstr("a mask in JPEG"));
}

// Pictures of 20 x 30 pixels, whose red is ten times the mask's value.
class MaskedPicturesTest : public testing::Test {
 protected:
  using Value = std::function<int(int64_t row, int64_t column)>;

  void add(const std::string& name, const Value& value, int64_t mask_columns = 30) const {
    std::vector<uint8_t> mask, picture;
    for (int64_t y = 0; y < 20; ++y) {
      for (int64_t x = 0; x < mask_columns; ++x) mask.push_back(static_cast<uint8_t>(value(y, x)));
      for (int64_t x = 0; x < 30; ++x)
        for (const int channel : {value(y, x) * 10, 7, 9}) picture.push_back(static_cast<uint8_t>(channel));
    }
    write("images/" + name + ".png", png(picture, 20, 30, 3));
    write("masks/" + name + ".png", png(mask, 20, mask_columns, 1));
  }
  void write(const std::string& file, const std::string& bytes) const {
    const std::filesystem::path path = scratch_.path(file);
    std::filesystem::create_directories(path.parent_path());
    write_text(path, bytes);
  }
  std::string folders() const {
    return "kind = 'image_folder'\npath = '" + scratch_.path("images") + "'\nmasks = '" +
           scratch_.path("masks") + "'\n";
  }
  static Setting section(const std::string& keys) {
    const Catalog catalog = train_data_catalog();
    return resolve(parse_recipe("[data.train]\nbatch_size = 1\n" + keys, "r.toml"), std::span(&catalog, 1))
        .at("data")
        .at("train");
  }
  static DatasetPtr data(const std::string& keys, int64_t ignore_index = kIgnoredTarget) {
    return make_dataset(section(keys), 0, "", ignore_index);
  }
  std::string why(const std::string& keys = "") const {
    return message_of<UserError>([&] { data(folders() + keys)->scan(); });
  }
  static Batch sample(const DatasetPtr& data, int64_t index, int64_t epoch = 0) {
    return data->get({&index, 1}, {.seed = 3, .number = epoch});
  }

  static int stripes(int64_t row, int64_t column) { return static_cast<int>((row / 5 + column / 7) % 3); }
  Scratch scratch_;
};

TEST_F(MaskedPicturesTest, PixelsOfMasksAreTargets) {
  add("a", stripes);
  add("below/b", [](int64_t, int64_t) { return 1; });
  const DatasetPtr pictures = data(folders());
  EXPECT_EQ(pictures->size(), 2);
  EXPECT_EQ(pictures->spec().classes, 3);
  EXPECT_EQ(pictures->spec().describe("target"), "int64 [20, 30]");
  const Batch first = sample(pictures, 0);
  EXPECT_TRUE(at::equal(first["target"] * 10, first["input"].select(3, 0).to(at::kLong)));
  EXPECT_THAT(class_names(section(folders())), ElementsAre());
}

TEST_F(MaskedPicturesTest, TransformsMovePictureAndMaskAlike) {
  add("a", stripes);
  const std::string crop = "[[data.train.transforms]]\nkind = 'random_crop'\nsize = 8\n";
  const DatasetPtr pictures = data(folders() + crop + "[[data.train.transforms]]\nkind = 'flip'\n");
  at::Tensor before;
  int changes = 0;
  for (int64_t epoch = 0; epoch < 8; ++epoch) {
    const Batch drawn = sample(pictures, 0, epoch);
    EXPECT_EQ(drawn["target"].sizes(), (Shape{1, 8, 8}));
    EXPECT_TRUE(at::equal(drawn["target"] * 10, drawn["input"].select(3, 0).to(at::kLong)));
    changes += before.defined() && !at::equal(before, drawn["target"]);
    before = drawn["target"];
  }
  EXPECT_GT(changes, 3);
}

TEST_F(MaskedPicturesTest, CountOfClassesIsGivenOrFromAllMasks) {
  add("a", stripes);
  EXPECT_EQ(data(folders() + "num_classes = 5")->spec().classes, 5);
  EXPECT_EQ(data(folders() + "classes = ['sky', 'road', 'car']")->spec().classes, 3);
  EXPECT_THAT(why("num_classes = 2"),
              AllOf(HasSubstr("masks/a.png"), HasSubstr("value 2 is no class: not in [0, 2)")));
}

TEST_F(MaskedPicturesTest, ValuesThatUsuallyDoNotCountAreAskedAbout) {
  add("a", [](int64_t row, int64_t column) { return row == 0 ? 255 : stripes(row, column); });
  EXPECT_THAT(why(), HasSubstr("ignore_index = 255"));
  const DatasetPtr ignoring = data(folders(), 255);
  EXPECT_EQ(ignoring->spec().classes, 3);
  EXPECT_EQ(sample(ignoring, 0)["target"][0][0][0].item<int64_t>(), kIgnoredTarget);
}

TEST_F(MaskedPicturesTest, ValuesOfClassesMayBeListed) {
  add("a", [](int64_t row, int64_t) { return row < 10 ? 0 : 255; });
  EXPECT_THAT(why(), HasSubstr("mask_values = [0, 255]"));
  const DatasetPtr pictures = data(folders() + "mask_values = [0, 255]");
  EXPECT_EQ(pictures->spec().classes, 2);
  EXPECT_EQ(sample(pictures, 0)["target"].sum().item<int64_t>(), 10 * 30);
  EXPECT_THAT(why("mask_values = [0, 128]"), HasSubstr("value 255 is no class: none of mask_values"));
}

TEST_F(MaskedPicturesTest, ValuesOfClassesAreDistinctAndCount) {
  add("a", stripes);
  EXPECT_THAT(why("mask_values = [0, 1, 2, 0]"), HasSubstr("two classes have the value 0"));
  EXPECT_THAT(message_of<UserError>([&] { data(folders() + "mask_values = [0, 1, 255]", 255); }),
              HasSubstr("the value 255 is model.ignore_index, too"));
}

TEST_F(MaskedPicturesTest, FilesWithoutCounterpartAreCounted) {
  for (const char* name : {"a", "b", "c"}) add(name, stripes);
  std::filesystem::remove(scratch_.path("masks/b.png"));
  std::filesystem::rename(scratch_.path("masks/c.png"), scratch_.path("masks/d.png"));
  const DatasetPtr pictures = data(folders());
  EXPECT_EQ(pictures->size(), 1);
  EXPECT_THAT(pictures->advice(), AllOf(HasSubstr("2 pictures without a mask are left out, such as b.png"),
                                        HasSubstr("1 mask without a picture is left out, such as d.png")));
  std::filesystem::remove(scratch_.path("masks/a.png"));
  EXPECT_THAT(why(), HasSubstr("no mask has the name of a picture"));
}

TEST_F(MaskedPicturesTest, MasksOfAnotherSizeAreRefused) {
  add("a", stripes, /*mask_columns=*/29);
  EXPECT_THAT(why("num_classes = 3"), HasSubstr("the image is 30 x 20, and its mask 29 x 20"));
}

TEST_F(MaskedPicturesTest, TablesMayNameMasks) {
  add("a", stripes);
  add("b", stripes);
  write("t.csv", "picture,seg,place\nimages/a.png,masks/b.png,x\nimages/b.png,masks/a.png,y\n");
  const std::string keys = "kind = 'image_table'\npath = '" + scratch_.path("t.csv") + "'\nmask = 'seg'\n";
  const DatasetPtr pictures = data(keys);
  EXPECT_EQ(pictures->size(), 2);
  EXPECT_EQ(pictures->spec().classes, 3);
  EXPECT_EQ(pictures->spec().describe("target"), "int64 [20, 30]");
  EXPECT_THAT(pictures->advice(), HasSubstr("not read: 'place'"));
  EXPECT_THAT(message_of<UserError>([&] { data(keys + "target = 'place'"); }), HasSubstr("excludes mask"));
}

}  // namespace
}  // namespace tutti
