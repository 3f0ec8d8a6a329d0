#include "data/readers/pictures/image_table.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "data/readers/catalog.h"
#include "data/readers/class_names.h"
#include "data/readers/make_dataset.h"
#include "data/split/sample_targets.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "tests/data/readers/image_samples.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ImageTableTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(scratch_.path() + "/img");
    for (const char* name : {"rgb_19x37.png", "420_19x37.jpg", "large_38x74.jpg"})
      write_text(scratch_.path() + "/img/" + name, encoded_sample(name));
  }
  std::string table(const std::string& rows, const std::string& name = "t.csv") const {
    write_text(scratch_.path() + "/" + name, rows);
    return "path = '" + scratch_.path() + "/" + name + "'\n";
  }
  static Setting section(const std::string& keys) {
    const Catalog catalog = train_data_catalog();
    const std::string recipe = "[data.train]\nbatch_size = 1\nkind = 'image_table'\n" + keys;
    return resolve(parse_recipe(recipe, "r.toml"), std::span(&catalog, 1)).at("data").at("train");
  }
  static DatasetPtr data(const std::string& keys, const std::optional<std::string>& fitted = std::nullopt) {
    return make_dataset(section(keys), 0, "", kIgnoredTarget, fitted);
  }
  static std::string why(const std::string& keys) {
    return message_of<UserError>([&] { data(keys); });
  }
  static at::Tensor targets(const Dataset& data) {
    std::vector<int64_t> all(static_cast<std::size_t>(data.size()));
    std::iota(all.begin(), all.end(), 0);
    return data.get(all, {})["target"];
  }

  const std::string kNamed =
      "file,kind,area,count\nimg/rgb_19x37.png,moth,0.5,3\nimg/420_19x37.jpg,ant,2,7\n";
  Scratch scratch_;
};

TEST_F(ImageTableTest, TextsAreClassesAndTheColumnOfPicturesIsKnown) {
  const DatasetPtr images = data(table(kNamed) + "target = 'kind'");
  EXPECT_EQ(images->spec().classes, 2);
  EXPECT_EQ(images->spec().describe("input"), "uint8 [19, 37, 3]");
  EXPECT_TRUE(at::equal(targets(*images), at::tensor({1, 0})));
  EXPECT_TRUE(at::equal(sample_targets(*images).targets, at::tensor({1, 0})));
  EXPECT_THAT(class_names(section(table(kNamed)), images->fitted()), ElementsAre("ant", "moth"));
  EXPECT_THAT(images->advice(), HasSubstr("not read: 'area', 'count'"));
  const at::Tensor first = images->get(std::vector<int64_t>{0}, {})["input"][0];
  EXPECT_TRUE(at::equal(first, decoded_sample("rgb_19x37.png")));
}

TEST_F(ImageTableTest, NumbersAreValues) {
  const DatasetPtr images = data(table(kNamed) + "target = ['area', 'count']");
  EXPECT_EQ(images->spec().describe("target"), "float32 [2]");
  EXPECT_TRUE(at::equal(targets(*images), at::tensor({0.5F, 3.0F, 2.0F, 7.0F}).view({2, 2})));
  EXPECT_TRUE(at::equal(targets(*data(table(kNamed) + "target = 'area'")), at::tensor({0.5F, 2.0F})));
}

TEST_F(ImageTableTest, TargetsMayBeNormalized) {
  const std::string keys = table(kNamed) + "target = ['area', 'count']\nnormalize_target = true";
  const DatasetPtr images = data(keys);
  const at::Tensor normalized = at::tensor({-1.0F, -1.0F, 1.0F, 1.0F}).view({2, 2});
  EXPECT_TRUE(at::allclose(targets(*images), normalized));
  EXPECT_TRUE(at::allclose(targets(*data(table(kNamed), images->fitted())), normalized));
  EXPECT_THAT(why(table(kNamed) + "target = 'kind'\nnormalize_target = true"),
              HasSubstr("expected targets that are numbers"));
}

TEST_F(ImageTableTest, JsonLinesAndRootsAreRead) {
  const std::string rows = R"({"p": "rgb_19x37.png", "y": "b"})"
                           "\n"
                           R"({"p": "420_19x37.jpg", "y": "a"})"
                           "\n";
  const DatasetPtr images =
      data(table(rows, "t.jsonl") + "target = 'y'\nroot = '" + scratch_.path() + "/img'");
  EXPECT_TRUE(at::equal(targets(*images), at::tensor({1, 0})));
}

TEST_F(ImageTableTest, PathsBeginInTheFolderOfEachTable) {
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directories(scratch_.path("tabs/" + std::string(name)));
    table("file,kind\n0.png," + std::string(name) + "\n", "tabs/" + std::string(name) + "/t.csv");
  }
  write_text(scratch_.path("tabs/a/0.png"), encoded_sample("rgb_19x37.png"));
  write_text(scratch_.path("tabs/b/0.png"), encoded_sample("palette_19x37.png"));
  const DatasetPtr images = data("path = '" + scratch_.path("tabs/*/t.csv") + "'\ntarget = 'kind'");
  const auto image = [&](int64_t index) { return images->get({&index, 1}, {})["input"][0]; };
  EXPECT_TRUE(at::equal(image(0), decoded_sample("rgb_19x37.png")));
  EXPECT_TRUE(at::equal(image(1), decoded_sample("palette_19x37.png")));
  EXPECT_EQ(dynamic_cast<const ImageFiles&>(*images).short_name(1), "b/0.png");
  std::filesystem::remove(scratch_.path("tabs/b/0.png"));
  EXPECT_THAT(why("path = '" + scratch_.path("tabs/*/t.csv") + "'\ntarget = 'kind'"),
              HasSubstr("there is no such picture: " + scratch_.path("tabs/b/0.png")));
}

TEST_F(ImageTableTest, EvaluationsHaveTheClassesOfTraining) {
  const std::string fitted = data(table(kNamed) + "target = 'kind'")->fitted();
  EXPECT_EQ(targets(*data(table("file,kind\nimg/420_19x37.jpg,moth\n"), fitted)).item<int64_t>(), 1);
  EXPECT_FALSE(data(table("file\nimg/420_19x37.jpg\n"), fitted)->spec().shapes.contains("target"));
  EXPECT_THAT(message_of<UserError>([&] { data(table("file,kind\nimg/420_19x37.jpg,bee\n"), fitted); }),
              AllOf(HasSubstr("line 2"), HasSubstr("'bee'")));
}

TEST_F(ImageTableTest, NumbersBeyondTheClassesOfTrainingAreRefused) {
  const std::string fitted =
      data(table("f,y\nimg/420_19x37.jpg,0\nimg/rgb_19x37.png,1\n") + "target = 'y'")->fitted();
  EXPECT_THAT(message_of<UserError>([&] { data(table("f,y\nimg/420_19x37.jpg,2\n"), fitted); }),
              HasSubstr("class 2 is not in [0, 2)"));
}

TEST_F(ImageTableTest, MissingPicturesAreNamedWithTheirLine) {
  const std::string rows = kNamed + "img/none.jpg,ant,1,1\n";
  EXPECT_THAT(why(table(rows) + "target = 'kind'"),
              AllOf(HasSubstr("line 4, column 'file'"), HasSubstr("img/none.jpg")));
  const DatasetPtr skipping = data(table(rows) + "target = 'kind'\non_bad_sample = 'skip'");
  EXPECT_TRUE(at::equal(targets(*skipping), at::tensor({1, 0, 1}))) << "the first takes the last one's place";
}

TEST_F(ImageTableTest, ColumnsOfPicturesThatAreNotClearAreAsked) {
  const std::string two = table("a,b,y\nimg/420_19x37.jpg,img/rgb_19x37.png,1\n");
  EXPECT_THAT(why(two + "target = 'y'"), HasSubstr("pictures are named by 'a', 'b'"));
  EXPECT_EQ(data(two + "target = 'y'\nimage = 'b'")->size(), 1);
  EXPECT_THAT(why(table("a,y\nx,1\n") + "target = 'y'"), HasSubstr("columns of texts are 'a'"));
  EXPECT_THAT(why(two + "image = 'c'"), HasSubstr("has no column 'c'"));
}

}  // namespace
}  // namespace tutti
