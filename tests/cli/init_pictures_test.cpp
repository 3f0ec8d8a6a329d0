// `tutti init` with tables of pictures, and with pictures and their masks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "io/formats/png.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/cli/init_case.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class InitPicturesTest : public InitCase {
 protected:
  void add(const std::string& file, const std::vector<uint8_t>& pixels) const {
    const std::filesystem::path path = scratch_.path(file);
    std::filesystem::create_directories(path.parent_path());
    write_text(path, png(pixels, 2, 2, 1));
  }
  // A table whose rows begin with pictures that exist.
  void add_table(const std::string& name, const std::string& head,
                 const std::vector<std::string>& rows) const {
    std::string text = head + '\n';
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string picture = "p/" + std::to_string(i) + ".png";
      add(picture, {0, 0, 0, 0});
      text += picture + ',' + rows[i] + '\n';
    }
    write_text(scratch_.path(name), text);
  }
  std::string error_of(const std::string& name, const std::vector<std::string>& targets = {}) const {
    return message_of<UserError>([&] { proposed(name, "", targets); });
  }
  static std::string recipe_of(const Proposal& data) {
    const std::string recipe = draft_recipe(data, {.command = "tutti init x"});
    resolve_recipe(parse_recipe(recipe, "r.toml"));
    return recipe;
  }
};

TEST_F(InitPicturesTest, NamesBesidePicturesAreClasses) {
  add_table("t.csv", "file,kind", {"ant", "moth", "ant"});
  const Proposal data = proposed("t.csv");
  EXPECT_EQ(line(data.train, "kind"), "\"image_table\"");
  EXPECT_EQ(line(data.train, "image"), "\"file\"");
  EXPECT_EQ(line(data.train, "target"), "\"kind\"");
  EXPECT_THAT(data.summary, HasSubstr("3 pictures in a table, 2 classes: 'kind'"));
  EXPECT_THAT(recipe_of(data), AllOf(HasSubstr("kind = \"resnet\""), Not(HasSubstr("mse"))));
}

TEST_F(InitPicturesTest, NumbersBesidePicturesArePredicted) {
  add_table("t.csv", "file,count", {"3.5", "4", "17"});
  const std::string recipe = recipe_of(proposed("t.csv"));
  EXPECT_THAT(recipe, AllOf(HasSubstr("loss = \"mse\""), HasSubstr("kind = \"adamw\""),
                            HasSubstr("in standard deviations"), Not(HasSubstr("random_resized_crop"))));
}

TEST_F(InitPicturesTest, SeveralColumnsAreChosenByTheUserOrTheirNames) {
  add_table("t.csv", "file,count,area", {"3.5,1", "4,2.5"});
  EXPECT_THAT(error_of("t.csv"), HasSubstr("--target count, or several numbers by --target count,area"));
  EXPECT_EQ(line(proposed("t.csv", "", {"count", "area"}).train, "target"), "[\"count\", \"area\"]");
  const Proposal single = proposed("t.csv", "", {"area"});
  EXPECT_EQ(line(single.train, "target"), "\"area\"");
  EXPECT_THAT(single.remarks, ElementsAre(HasSubstr("not read: 'count'")));
  EXPECT_THAT(error_of("t.csv", {"are"}), HasSubstr("did you mean 'area'"));
  add_table("named.csv", "file,place,label", {"x,a", "y,b"});
  EXPECT_EQ(line(proposed("named.csv").train, "target"), "\"label\"");
}

TEST_F(InitPicturesTest, TargetsOfOtherTablesMayBeChosen) {
  write_text(scratch_.path("plain.csv"), "a,b,c\n0.5,1,2.5\n0.25,0,3\n");
  EXPECT_EQ(line(proposed("plain.csv", "", {"b"}).train, "target"), "\"b\"");
  EXPECT_THAT(error_of("plain.csv", {"b", "c"}), HasSubstr("a single column"));
}

TEST_F(InitPicturesTest, PicturesBesideTheirMasksAreSegmented) {
  for (const char* name : {"1.png", "2.png"}) {
    add(std::string("roads/images/") + name, {9, 9, 9, 9});
    add(std::string("roads/labels/") + name, {0, 1, 2, 255});
  }
  add("roads/images/3.png", {0, 0, 0, 0});
  const Proposal data = proposed("roads");
  EXPECT_EQ(line(data.train, "path"), "\"roads/images\"");
  EXPECT_EQ(line(data.train, "masks"), "\"roads/labels\"");
  EXPECT_EQ(line(data.train, "num_classes"), "3");
  EXPECT_EQ(line(data.model, "ignore_index"), "255");
  EXPECT_EQ(data.count, 2);
  EXPECT_THAT(data.remarks, ElementsAre(HasSubstr("1 pictures have no mask")));
  EXPECT_THAT(recipe_of(data), HasSubstr("kind = \"unet\""));
}

TEST_F(InitPicturesTest, ValuesOfMasksThatAreNoNumbersOfClassesAreListed) {
  add("cars/img/1.png", {0, 0, 0, 0});
  add("cars/masks/1.png", {0, 0, 255, 255});
  EXPECT_EQ(line(proposed("cars").train, "mask_values"), "[0, 255]");
  add("cells/img/1.png", {0, 0, 0, 0});
  add("cells/masks/1.png", {0, 85, 170, 170});
  EXPECT_EQ(line(proposed("cells").train, "mask_values"), "[0, 85, 170]");
}

TEST_F(InitPicturesTest, FoldersOfPartsHaveMasksOfTheirOwn) {
  for (const char* part : {"train", "val"})
    for (const char* kind : {"images", "masks"}) {
      add(std::string("inner/") + kind + '/' + part + "/1.png", {0, 1, 1, 0});
      add(std::string("outer/") + part + '/' + kind + "/1.png", {0, 1, 1, 0});
    }
  EXPECT_EQ(line(proposed("inner").train, "masks"), "\"inner/masks/train\"");
  EXPECT_EQ(line(proposed("inner").eval, "path"), "\"inner/images/val\"");
  EXPECT_EQ(line(proposed("inner").eval, "num_classes"), "2");
  EXPECT_EQ(line(proposed("outer").train, "path"), "\"outer/train/images\"");
  EXPECT_EQ(line(proposed("outer").eval, "masks"), "\"outer/val/masks\"");
}

TEST_F(InitPicturesTest, CountsAreClassesWithAWord) {
  add_table("t.csv", "file,stars", {"0", "1", "2", "1"});
  const Proposal data = proposed("t.csv");
  EXPECT_THAT(data.remarks, ElementsAre(HasSubstr("whole numbers 0 to 2, taken for classes")));
  EXPECT_EQ(line(data.train, "target_type"), "\"auto\"");
}

TEST_F(InitPicturesTest, PicturesMayBeInAFolderBesideTheTable) {
  for (const char* file : {"images/0.png", "images/1.png", "val_images/2.png"}) add(file, {0, 0, 0, 0});
  write_text(scratch_.path("train.csv"), "file,kind\n0.png,a\n1.png,b\n");
  write_text(scratch_.path("val.csv"), "file,kind\n2.png,a\n");
  const Proposal data = proposed("train.csv");
  EXPECT_EQ(line(data.train, "kind"), "\"image_table\"");
  EXPECT_EQ(line(data.train, "root"), "\"images\"");
  EXPECT_EQ(line(data.eval, "root"), "\"val_images\"");
  std::filesystem::remove_all(scratch_.path("val_images"));
  EXPECT_THAT(proposed("train.csv").remarks, testing::Contains(HasSubstr("its pictures are not found")));
  write_text(scratch_.path("train.csv"), "file,kind\nlost.png,a\nlost2.png,b\n");
  EXPECT_THAT(error_of("train.csv"), HasSubstr("'file' names pictures, such as 'lost.png'"));
  EXPECT_THAT(error_of("images"), HasSubstr("2 pictures and no classes"));
}

TEST_F(InitPicturesTest, CaptionsAreNoClasses) {
  std::vector<std::string> captions;
  for (int i = 0; i < 12; ++i) captions.push_back("a cat " + std::to_string(i));
  add_table("t.csv", "file,caption", captions);
  EXPECT_THAT(error_of("t.csv"), HasSubstr("12 different texts in 12 rows: no classes"));
}

TEST_F(InitPicturesTest, TablesOfMasksMayHaveATableToEvaluateOn) {
  add("m/0.png", {0, 1, 2, 2});
  add_table("train.csv", "image,mask", {"m/0.png"});
  add_table("val.csv", "image,mask", {"m/0.png"});
  const Proposal data = proposed("train.csv");
  EXPECT_EQ(line(data.eval, "path"), "\"val.csv\"");
  EXPECT_EQ(line(data.eval, "mask"), "\"mask\"");
  EXPECT_EQ(line(data.eval, "num_classes"), "3");
  recipe_of(data);
}

TEST_F(InitPicturesTest, TablesMayNameMasks) {
  add("m/0.png", {0, 1, 2, 2});
  add("m/1.png", {0, 1, 2, 2});
  add_table("t.csv", "image,mask", {"m/0.png", "m/1.png"});
  const Proposal data = proposed("t.csv");
  EXPECT_EQ(line(data.train, "mask"), "\"mask\"");
  EXPECT_EQ(line(data.train, "num_classes"), "3");
  EXPECT_THAT(recipe_of(data), HasSubstr("kind = \"unet\""));
}

}  // namespace
}  // namespace tutti
