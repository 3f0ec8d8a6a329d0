#include "data/readers/make_dataset.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "io/hdf5/hdf5_writer.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// A resolved section; the first key stands on line 2 of the recipe.
class Section {
 public:
  Section& set(const std::string& key, const Setting::Value& value) {
    const int line = static_cast<int>(keys_.size()) + 2;
    keys_.emplace_back(key, Setting(value, "data.train." + key, Position{"digits.toml", line}));
    return *this;
  }
  Setting done() const { return Setting(keys_, "data.train", Position{"digits.toml", 1}); }

 private:
  Setting::Table keys_;
};

Setting::Array array_of(const std::vector<Setting::Value>& items) {
  Setting::Array array;
  for (const Setting::Value& item : items) array.emplace_back(item, "data.train", Position{"digits.toml", 0});
  return array;
}

std::string example(const std::string& name) { return TUTTI_SOURCE_DIR "/examples/data/" + name; }

Setting hdf5_section(const std::string& path, const std::string& group,
                     const std::vector<Setting::Value>& arrays = {}) {
  Section section;
  section.set("kind", "hdf5").set("path", path).set("group", group).set("num_classes", {});
  if (!arrays.empty()) section.set("arrays", array_of(arrays));
  return section.done();
}

Setting text_section(const std::string& split) {
  Section section;
  section.set("kind", "bytes").set("path", example("king_james.txt")).set("sequence_length", int64_t{128});
  return section.set("split", split).set("eval_fraction", 0.1).done();
}

Setting tokens_section(const std::string& path, const std::string& dtype) {
  Section section;
  section.set("kind", "tokens").set("path", path).set("sequence_length", int64_t{4}).set("split", "all");
  return section.set("eval_fraction", 0.1).set("dtype", dtype).done();
}

Setting synthetic_section(const std::string& targets, const std::vector<Setting::Value>& shape) {
  Section section;
  section.set("kind", "synthetic")
      .set("samples", int64_t{8})
      .set("shape", array_of(shape))
      .set("targets", targets);
  return section.set("classes", int64_t{10}).set("vocab", int64_t{256}).done();
}

TEST(MakeDataset, TheDtypeOfTokensIsThatOfTheFile) {
  const Scratch folder;
  const std::string path = folder.path("tokens.bin");
  std::vector<int32_t> tokens(50);
  std::iota(tokens.begin(), tokens.end(), 3);
  write_text(path, {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof(int32_t)});
  for (const char* dtype : {"int32", "uint32"})
    EXPECT_EQ(make_dataset(tokens_section(path, dtype))->spec().classes, 53);
  EXPECT_THAT(message_of<UserError>([&] { make_dataset(tokens_section(path, "uint16")); }),
              AllOf(StartsWith("digits.toml:7: data.train.dtype = \"uint16\": "), HasSubstr(path),
                    HasSubstr("expected dtype = \"int32\"")));
}

TEST(MakeDataset, DigitsShipWithTheProgram) {
  const DatasetPtr train = make_dataset(hdf5_section(example("digits.h5"), "train"));
  const DatasetPtr test = make_dataset(hdf5_section(example("digits.h5"), "test"));
  EXPECT_EQ(train->size(), 1437);
  EXPECT_EQ(test->size(), 360);
  EXPECT_EQ(train->spec().shapes.at("input"), (Shape{1, 8, 8}));
  EXPECT_EQ(test->spec().classes, 10);
  EXPECT_NO_THROW(train->scan());
  EXPECT_NE(train->digest(), test->digest());
}

TEST(MakeDataset, TextShipsWithTheProgram) {
  EXPECT_EQ(make_dataset(text_section("train"))->size(), (510'033 * 9 / 10 - 1) / 128);
  EXPECT_EQ(make_dataset(text_section("eval"))->size(), (510'033 - 510'033 * 9 / 10 - 1) / 128);
}

TEST(MakeDataset, SyntheticTakesItsClassesFromTheTargets) {
  EXPECT_EQ(make_dataset(synthetic_section("class", {int64_t{5}}))->spec().classes, 10);
  EXPECT_EQ(make_dataset(synthetic_section("sequence", {int64_t{5}}))->spec().classes, 256);
}

TEST(MakeDataset, SeedMakesOtherSyntheticData) {
  const Setting section = synthetic_section("class", {int64_t{5}});
  EXPECT_NE(make_dataset(section, 1)->digest(), make_dataset(section, 2)->digest());
}

TEST(MakeDataset, BadFileIsNamedWithTheRecipesLine) {
  const auto why = message_of<UserError>([] { make_dataset(hdf5_section("/nowhere.h5", "train")); });
  EXPECT_THAT(why,
              AllOf(HasSubstr("digits.toml:3"), HasSubstr("data.train.path"), HasSubstr("no such file")));
}

TEST(MakeDataset, MissingDatasetIsBlamedOnTheKeyThatNamesIt) {
  const auto why = [](const std::string& group) {
    const Setting section = hdf5_section(example("digits.h5"), group, {std::string("image")});
    return message_of<UserError>([&] { make_dataset(section); });
  };
  EXPECT_THAT(why("train"), AllOf(HasSubstr("digits.toml:6: data.train.arrays"),
                                  HasSubstr("no array 'train/image'"), HasSubstr("train/input")));
  EXPECT_THAT(why("trian"), AllOf(HasSubstr("digits.toml:4: data.train.group = \"trian\""),
                                  HasSubstr("no arrays in the group '/trian/'"), HasSubstr("train/input")));
}

TEST(MakeDataset, AMissingArrayIsBlamedOnTheNameThatStandsForIt) {
  Setting section = hdf5_section(example("digits.h5"), "train");
  const auto named = [](const char* name, const char* stored) {
    return std::pair(
        name, Setting(std::string(stored), std::string("data.train.arrays.") + name, {"digits.toml", 7}));
  };
  const auto with_target = [&](const char* stored) {
    Setting whole = section;
    const Setting::Table names = {named("x", "input"), named("target", stored)};
    whole.table().emplace_back("arrays", Setting(names, "data.train.arrays", {"digits.toml", 6}));
    return whole;
  };
  EXPECT_EQ(make_dataset(with_target("target"))->spec().shapes.count("x"), 1u);
  EXPECT_THAT(message_of<UserError>([&] { make_dataset(with_target("targets")); }),
              AllOf(StartsWith("digits.toml:7: data.train.arrays.target = \"targets\": "),
                    HasSubstr("did you mean 'train/target'? The file has"), HasSubstr("train/target ")));
  EXPECT_THAT(message_of<UserError>([&] { make_dataset(with_target("/")); }),
              HasSubstr("digits.toml:7: data.train.arrays.target = \"/\": expected the name of an array"));
}

TEST(MakeDataset, ShapeOfASequenceHasOneDimension) {
  const auto why = message_of<UserError>([] {
    make_dataset(synthetic_section("sequence", {int64_t{4}, int64_t{4}}));
  });
  EXPECT_THAT(why, AllOf(HasSubstr("digits.toml:4"), HasSubstr("data.train.shape")));
}

}  // namespace
}  // namespace tutti
