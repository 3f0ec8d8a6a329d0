#include "data/readers/image_folder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "data/readers/catalog.h"
#include "data/readers/class_names.h"
#include "data/readers/make_dataset.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "tests/data/readers/image_samples.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kCrop = "[[data.train.transforms]]\nkind = 'random_resized_crop'\nsize = 8\n";

class ImageFolder : public testing::Test {
 protected:
  // dog/ has a.jpg and below/b.png, cat/ has c.webp, d.jpg.
  void SetUp() override {
    add("dog/a.jpg", encoded_sample("420_19x37.jpg"));
    add("dog/below/b.png", encoded_sample("rgb_19x37.png"));
    add("cat/c.webp", encoded_sample("lossy_19x37.webp"));
    add("cat/d.JPG", encoded_sample("gray_19x37.jpg"));
    add("cat/notes.txt", "no image");
    add(".hidden/e.jpg", "no image");
    add("cat/.hidden.jpg", "no image");
    std::filesystem::create_symlink("/no/where", scratch_.path() + "/images/cat/e.jpg");
  }

  void add(const std::string& file, const std::string& bytes) const {
    const std::filesystem::path path = scratch_.path() + "/images/" + file;
    std::filesystem::create_directories(path.parent_path());
    write_text(path, bytes);
  }
  // Twice as large as the others.
  void add_large(const std::string& file) const { add(file, encoded_sample("large_38x74.jpg")); }

  Setting section(const std::string& keys, const std::string& transforms = "") const {
    const Catalog catalog = train_data_catalog();
    const std::string recipe = "[data.train]\nkind = 'image_folder'\nbatch_size = 1\npath = '" +
                               scratch_.path() + "/images'\n" + keys + "\n" + transforms;
    return resolve(parse_recipe(recipe, "r.toml"), std::span(&catalog, 1)).at("data").at("train");
  }
  DatasetPtr data(const std::string& keys = "", const std::string& transforms = "") const {
    return make_dataset(section(keys, transforms));
  }
  std::string why(const std::string& keys, const std::string& transforms = "") const {
    return message_of<UserError>([&] { data(keys, transforms)->get(std::vector<int64_t>{0, 1, 2, 3}, {}); });
  }
  at::Tensor targets(const DatasetPtr& data) const {
    return data->get(std::vector<int64_t>{0, 1, 2, 3}, {})["target"];
  }

  Scratch scratch_;
};

TEST_F(ImageFolder, SortedFoldersAreClasses) {
  const DatasetPtr images = data();
  EXPECT_EQ(images->size(), 4);
  EXPECT_EQ(images->spec().classes, 2);
  EXPECT_EQ(images->spec().describe("input"), "uint8 [19, 37, 3]") << "all have that size";
  EXPECT_TRUE(at::equal(targets(images), at::tensor({0, 0, 1, 1})));
  EXPECT_THAT(class_names(section("")), ElementsAre("cat", "dog"));
  const at::Tensor png = images->get(std::vector<int64_t>{3}, {})["input"][0];
  EXPECT_TRUE(at::equal(png, decoded_sample("rgb_19x37.png")));
}

TEST_F(ImageFolder, ClassesCanBeThoseOfAnotherFolder) {
  std::filesystem::create_directories(scratch_.path() + "/train/ant");
  std::filesystem::create_directories(scratch_.path() + "/train/cat");
  std::filesystem::create_directories(scratch_.path() + "/train/dog");
  const std::string from = "classes_from = '" + scratch_.path() + "/train'";
  EXPECT_TRUE(at::equal(targets(data(from)), at::tensor({1, 1, 2, 2})));
  EXPECT_EQ(data(from)->spec().classes, 3);
  EXPECT_TRUE(at::equal(targets(data("classes = ['dog', 'cat']")), at::tensor({1, 1, 0, 0})));
  write_text(scratch_.path() + "/names.txt", "x\ny\ncat\ndog\n");
  EXPECT_TRUE(at::equal(targets(data("classes_from = '" + scratch_.path() + "/names.txt'")),
                        at::tensor({2, 2, 3, 3})));
  EXPECT_THAT(why("classes = ['dog', 'cats']"),
              AllOf(HasSubstr("images/cat: 'cat' is no class"), HasSubstr("cats")));
  EXPECT_THAT(why(from + "\nclasses = ['dog']"), HasSubstr("given by classes, too"));
}

TEST_F(ImageFolder, AListNamesFilesAndClasses) {
  const std::string list = scratch_.path() + "/list.txt";
  const std::string key = "list = '" + list + "'";
  write_text(list,
             "\xef\xbb\xbf"
             "dog/a.jpg dog\n\ncat/c.webp\tcat\ndog/below/b.png dog\ncat/d.JPG cat\n");
  EXPECT_TRUE(at::equal(targets(data(key)), at::tensor({1, 0, 1, 0})));
  EXPECT_THAT(class_names(section(key)), ElementsAre("cat", "dog"));
  write_text(list, "dog/a.jpg 4\ncat/c.webp 0\ndog/below/b.png 4\ncat/d.JPG 1\n");
  EXPECT_TRUE(at::equal(targets(data(key)), at::tensor({4, 0, 4, 1})));
  EXPECT_EQ(data(key)->spec().classes, 5);
  EXPECT_EQ(data(key + "\nnum_classes = 7")->spec().classes, 7);
  EXPECT_THAT(why(key + "\nnum_classes = 4"), HasSubstr("has a class 4"));
  EXPECT_THAT(why(key + "\nclasses = ['x', 'y']"), HasSubstr("list.txt:1: class 4 is not in [0, 2)"));
  EXPECT_THAT(why(key + "\nclasses = ['w', 'x', 'y', 'z']"), HasSubstr("class 4 is not in [0, 4)"));
  write_text(list, "dog/a.jpg 0\ncat/d.JPG -1\n");
  EXPECT_THAT(why(key), HasSubstr("list.txt:2: class -1; classes are names, or numbers from 0 on"));
  write_text(list, "dog/a.jpg 4\ncat\n");
  EXPECT_THAT(why(key), HasSubstr("list.txt:2: expected a path"));
}

TEST_F(ImageFolder, ImagesOfManySizesNeedATransform) {
  add_large("dog/z.jpg");
  EXPECT_THAT(why(""), AllOf(HasSubstr("r.toml:2"), HasSubstr("c.webp: sample 0 is 37 x 19"),
                             HasSubstr("z.jpg: sample 3 is 74 x 38"), HasSubstr("add random_resized_crop")));
  const std::string smaller = "[[data.train.transforms]]\nkind = 'resize'\nsize = 16\n";
  EXPECT_THAT(why("", smaller), HasSubstr("data.train.transforms"));
  const auto crop = data("", smaller + "[[data.train.transforms]]\nkind = 'center_crop'\nsize = 12\n");
  EXPECT_EQ(crop->spec().describe("input"), "uint8 [12, 12, 3]");
  EXPECT_EQ(crop->get(std::vector<int64_t>{0, 3}, {})["input"].sizes(), (Shape{2, 12, 12, 3}));
  EXPECT_EQ(crop->get(std::vector<int64_t>{}, {})["input"].sizes(), (Shape{0, 12, 12, 3}));
}

TEST_F(ImageFolder, ASampleDependsOnItselfAlone) {
  add_large("dog/z.jpg");
  const auto images =
      data("mean = 0.5\nstd = 0.2", std::string(kCrop) + "[[data.train.transforms]]\nkind = 'flip'\n");
  EXPECT_EQ(images->spec().describe("input"), "float32 [3, 8, 8]");
  const Batch all = images->get(std::vector<int64_t>{3, 2, 0}, {.seed = 1, .number = 2});
  EXPECT_TRUE(
      at::equal(images->get(std::vector<int64_t>{2}, {.seed = 1, .number = 2})["input"][0], all["input"][1]));
  EXPECT_FALSE(
      at::equal(images->get(std::vector<int64_t>{2}, {.seed = 1, .number = 3})["input"][0], all["input"][1]));
}

// What is decoded in part has the pixels of the crop of the whole.
TEST_F(ImageFolder, TheDecodedPartIsThatOfTheTransform) {
  const auto cropped = [&](const std::string& first) {
    return data("scaled_decoding = false", first + kCrop)
        ->get(std::vector<int64_t>{0, 1, 2, 3}, {.seed = 5})["input"];
  };
  EXPECT_TRUE(at::equal(cropped(""), cropped("[[data.train.transforms]]\nkind = 'flip'\np = 0\n")));
}

TEST_F(ImageFolder, ADamagedImageIsAnErrorWithItsPathAndIndex) {
  add("cat/d.JPG", encoded_sample("gray_19x37.jpg").substr(0, 300));
  EXPECT_THAT(why("", kCrop),
              HasSubstr("images/cat/d.JPG: sample 1: no readable JPEG file: the file is truncated"));
  EXPECT_THAT(message_of<UserError>([&] { data("", kCrop)->scan(); }), HasSubstr("d.JPG: sample 1"));
}

TEST_F(ImageFolder, ADamagedImageCanBeReplacedByTheNext) {
  add("cat/d.JPG", "no image");
  const auto images = data("on_bad_sample = 'skip'");
  const Batch batch = images->get(std::vector<int64_t>{0, 1, 2, 3}, {});
  EXPECT_TRUE(at::equal(batch["input"][1], batch["input"][2]));
  EXPECT_TRUE(at::equal(batch["target"], at::tensor({0, 1, 1, 1}))) << "of the image in its place";
  add("dog/below/b.png", "no image");
  const Batch last = data("on_bad_sample = 'skip'")->get(std::vector<int64_t>{3}, {});
  EXPECT_TRUE(at::equal(last["input"][0], batch["input"][0])) << "the first follows the last";
  EXPECT_THAT(images->replaced(), AllOf(HasSubstr("1 times"), HasSubstr("d.JPG: sample 1: no image")));
  EXPECT_EQ(data("")->replaced(), "");
}

TEST_F(ImageFolder, ACropThatDoesNotFitIsNoDamage) {
  add_large("dog/z.jpg");
  const std::string crop = "[[data.train.transforms]]\nkind = 'random_crop'\nsize = 30\n";
  EXPECT_THAT(why("on_bad_sample = 'skip'", crop), HasSubstr("the images are [19, 37]"));
}

TEST_F(ImageFolder, AFolderWithoutImagesIsAnError) {
  std::filesystem::create_directories(scratch_.path() + "/images/eel");
  EXPECT_THAT(why(""), HasSubstr("images/eel: holds no .jpg"));
  const std::string path = "path = '" + scratch_.path() + "/images/dog/below'";
  EXPECT_THAT(message_of<UserError>([&] { class_folders(scratch_.path() + "/images/dog/below"); }),
              HasSubstr("has no folders"));
}

TEST_F(ImageFolder, DigestIsOfNamesAndSizes) {
  const uint64_t before = data()->digest();
  EXPECT_EQ(data()->digest(), before);
  add("cat/d.JPG", encoded_sample("gray_19x37.jpg") + ' ');
  EXPECT_NE(data()->digest(), before);
  add("cat/d.JPG", encoded_sample("gray_19x37.jpg"));
  add("cat/x.jpg", encoded_sample("420_19x37.jpg"));
  EXPECT_NE(data()->digest(), before);
}

TEST_F(ImageFolder, DigestIsOfClasses) {
  const std::string list = scratch_.path() + "/list.txt", key = "list = '" + list + "'";
  write_text(list, "dog/a.jpg 0\ncat/d.JPG 1\n");
  const uint64_t before = data(key)->digest();
  write_text(list, "dog/a.jpg 1\ncat/d.JPG 0\n");
  EXPECT_NE(data(key)->digest(), before);
}

TEST_F(ImageFolder, ListsMayHaveAbsolutePaths) {
  const std::string list = scratch_.path() + "/list.txt", elsewhere = scratch_.path("else where.png");
  write_text(elsewhere, encoded_sample("rgb_19x37.png"));
  write_text(list, elsewhere + "\t0\n" + elsewhere + " 1\n");
  const Batch batch = data("list = '" + list + "'")->get(std::vector<int64_t>{0, 1}, {});
  EXPECT_TRUE(at::equal(batch["input"][1], decoded_sample("rgb_19x37.png")));
  EXPECT_TRUE(at::equal(batch["target"], at::tensor({0, 1})));
}

TEST_F(ImageFolder, FilesLeftOutAreCounted) {
  add("cat/notes2.TXT", "no image");
  add("dog/below/x.heic", "no image");
  add("dog/Makefile", "no image");
  add("z.png", "beside the classes");
  EXPECT_EQ(data()->advice(),
            scratch_.path() + "/images: 5 files are left out: 2 .txt, 1 .heic, 1 .png, 1 of other names");
  add("eel/a.heic", "no image");
  EXPECT_THAT(why(""),
              AllOf(HasSubstr("images/eel: holds no .jpg"), HasSubstr("; 1 file is left out: 1 .heic")));
}

TEST_F(ImageFolder, FilesOfAllKindsAreRead) {
  std::filesystem::remove_all(scratch_.path() + "/images");
  const std::vector<std::string> names = {"downward_19x37.bmp", "palette_19x37.gif", "420_19x37.jpg",
                                          "rgb_19x37.tif", "color_19x37.ppm"};
  for (std::size_t i = 0; i < names.size(); ++i)
    add("cat/" + std::to_string(i) + (i == 2 ? ".JFIF" : names[i].substr(names[i].rfind('.'))),
        encoded_sample(names[i]));
  ASSERT_EQ(data()->size(), std::ssize(names));
  EXPECT_EQ(data()->advice(), "");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::vector<int64_t> row{static_cast<int64_t>(i)};
    EXPECT_TRUE(at::equal(data()->get(row, {})["input"][0], decoded_sample(names[i]))) << names[i];
  }
}

TEST_F(ImageFolder, TheMostPixelsAreAKeyOfTheRecipe) {
  EXPECT_EQ(data("max_image_pixels = 703")->size(), 4);
  EXPECT_THAT(why("max_image_pixels = 702"), HasSubstr("at most 702 pixels are read"));
}

TEST_F(ImageFolder, NumbersThatAreNotWholeAreNoClasses) {
  const std::string list = scratch_.path() + "/list.txt", key = "list = '" + list + "'";
  write_text(list,
             "\xef\xbb\xbf"
             "dog/a.jpg 3\ncat/d.JPG 0.25\n");
  EXPECT_THAT(why(key), HasSubstr("list.txt:2: class 0.25; classes are names, or whole numbers from 0 on"));
  write_text(list, "dog/a.jpg 3\ncat/d.JPG v0.25\n");
  EXPECT_THAT(class_names(section(key)), ElementsAre("3", "v0.25"));
}

TEST_F(ImageFolder, ClassesMayBeLinks) {
  std::filesystem::create_directory_symlink(scratch_.path() + "/images/dog", scratch_.path() + "/images/eel");
  EXPECT_THAT(class_names(section("")), ElementsAre("cat", "dog", "eel"));
  EXPECT_EQ(data()->size(), 6);
}

}  // namespace
}  // namespace tutti
