#include "data/split/open_split.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "data/readers/make_dataset.h"
#include "data/tables/fitted_table.h"
#include "io/hdf5/hdf5_writer.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/disk.h"
#include "runtime/random.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

const std::string kGoldenData = TUTTI_SOURCE_DIR "/tests/golden/";

Setting split_recipe(const std::string& train, const std::string& eval) {
  const std::string rest =
      "[model]\nkind = 'mlp'\n[optimizer]\nkind = 'sgd'\nlr = 0.1\n[train]\nmax_duration = '1ep'\n";
  return resolve_recipe(parse_recipe(
      "seed = 5\n[data.train]\nbatch_size = 2\n" + train + "\n[data.eval]\n" + eval + "\n" + rest, "r.toml"));
}

SplitData opened_split(const std::string& train, const std::string& eval,
                       const std::optional<std::string>& fitted = std::nullopt) {
  const Setting recipe = split_recipe(train, eval);
  return open_split(recipe.at("data").at("train"), recipe.at("data").at("eval"), nullptr,
                    {.seed = 5, .ignore_index = kIgnoredTarget, .fitted = fitted});
}

std::string split_error(const std::string& train, const std::string& eval) {
  return message_of<UserError>([&] { opened_split(train, eval); });
}

// The bytes of each sample.
std::vector<std::string> samples_of(const Dataset& data) {
  std::vector<std::string> samples;
  for (int64_t i = 0; i < data.size(); ++i) {
    std::string& sample = samples.emplace_back();
    for (const auto& [name, value] : data.get({&i, 1}, {}).leaves()) {
      const at::Tensor whole = value.contiguous();
      sample += name + std::string(static_cast<const char*>(whole.const_data_ptr()), whole.nbytes());
    }
  }
  return samples;
}

// Files of unique samples. Each function writes `count` samples of up to `classes` classes, and returns the
// keys of [data.train].
class DrawnFiles {
 public:
  std::string csv(int64_t count, int64_t classes, bool are_numbers) const {
    std::string text = "id,city,person,y\n";
    for (int64_t i = 0; i < count; ++i)
      text += std::to_string(i * 3 + 1) + ",c" + std::to_string(i % 3) + ",p" + std::to_string(i % 7) + "," +
              (are_numbers ? std::to_string(i) + ".5" : "k" + std::to_string(i % classes)) + "\n";
    write_text(scratch_.path("t.csv"), text);
    return "kind = 'csv'\ntarget = 'y'\ninputs = ['id']\none_hot = ['city']\npath = '" +
           scratch_.path("t.csv") + "'\n";
  }
  std::string texts(int64_t count, int64_t classes) const {
    std::string text;
    for (int64_t i = 0; i < count; ++i)
      text += R"({"text": "a )" + std::to_string(i) + R"(", "person": "p)" + std::to_string(i % 7) +
              R"(", "y": "k)" + std::to_string(i % classes) + "\"}\n";
    write_text(scratch_.path("t.jsonl"), text);
    return "kind = 'text_table'\ntarget = 'y'\nsequence_length = 16\ntokenizer = '" + kGoldenData +
           "tokenizers/bert.json'\npath = '" + scratch_.path("t.jsonl") + "'\n";
  }
  std::string hdf5(int64_t count, int64_t classes) const {
    const at::Tensor numbers = at::arange(count);
    PosixDisk disk;
    write_hdf5(disk, scratch_.path("t.h5"),
               {hdf5_array("input", numbers.to(at::kFloat).unsqueeze(1).repeat({1, 2})),
                hdf5_array("target", numbers % classes), hdf5_array("person", numbers % 7)});
    return "kind = 'hdf5'\narrays = ['input', 'target']\npath = '" + scratch_.path("t.h5") + "'\n";
  }
  std::string images(int64_t count, int64_t classes) const {
    const std::filesystem::path folder = scratch_.path("images");
    std::filesystem::remove_all(folder);
    for (int64_t i = 0; i < count; ++i) {
      const auto name = folder / ("k" + std::to_string(i % classes));
      std::filesystem::create_directories(name);
      std::string pixels(12, static_cast<char>(i));
      pixels[1] = static_cast<char>(i / 256);
      write_text(name / (std::to_string(i) + ".ppm"), "P6\n2 2\n255\n" + pixels);
    }
    return "kind = 'image_folder'\npath = '" + folder.string() + "'\n";
  }
  std::string bytes(int64_t count) const {
    std::string text;
    for (int64_t i = 0; i < count; ++i) {
      std::string number = std::to_string(i);
      text += std::string(8 - number.size(), '0') + number;
    }
    write_text(scratch_.path("t.txt"), text + "0");
    return "kind = 'bytes'\nsequence_length = 8\npath = '" + scratch_.path("t.txt") + "'\n";
  }
  static std::string synthetic(int64_t count, int64_t classes) {
    return "kind = 'synthetic'\nshape = [3]\nsamples = " + std::to_string(count) +
           "\nclasses = " + std::to_string(classes) + "\n";
  }

  std::string drawn(uint64_t kind, int64_t count, int64_t classes) const {
    switch (kind) {
      case 0:
        return csv(count, classes, /*are_numbers=*/false);
      case 1:
        return csv(count, classes, /*are_numbers=*/true);
      case 2:
        return texts(count, classes);
      case 3:
        return hdf5(count, classes);
      case 4:
        return images(count, classes);
      case 5:
        return bytes(count);
      default:
        return synthetic(count, classes);
    }
  }

 private:
  Scratch scratch_;
};

std::vector<std::string> sorted(std::vector<std::string> samples) {
  std::ranges::sort(samples);
  return samples;
}

TEST(OpenSplit, PartsOfDrawnRecipesHaveEachSampleOnce) {
  constexpr uint64_t kFast[] = {0, 1, 3, 4, 5};
  const DrawnFiles files;
  for (uint64_t draw = 0; draw < 50; ++draw) {
    const RandomKey key(draw, "recipes");
    const auto count = static_cast<int64_t>(12 + key.below(80, 0)),
               classes = static_cast<int64_t>(2 + key.below(4, 1));
    const std::string train = files.drawn(draw < 14 ? draw % 7 : kFast[draw % 5], count, classes);
    const std::string share = key.below(3, 2) == 0 ? "4" : "0." + std::to_string(1 + key.below(6, 3));
    const std::string eval = "split = " + share + "\nsplit_seed = " + std::to_string(key.below(100, 4));
    SCOPED_TRACE(train + eval);
    const Setting recipe = split_recipe(train, eval);
    const SplitData split = opened_split(train, eval), again = opened_split(train, eval);
    const auto trained = samples_of(*split.train), held_out = samples_of(*split.held_out);
    auto both = trained;
    both.insert(both.end(), held_out.begin(), held_out.end());
    EXPECT_EQ(std::set(both.begin(), both.end()).size(), static_cast<std::size_t>(count));
    EXPECT_EQ(sorted(both), sorted(samples_of(*make_dataset(recipe.at("data").at("train"), 5))));
    EXPECT_FALSE(held_out.empty());
    EXPECT_EQ(held_out, samples_of(*again.held_out));
    EXPECT_EQ(trained, samples_of(*again.train));
    EXPECT_EQ(split.train->digest(), again.train->digest());
  }
}

// An epoch has all samples of the part.
TEST(OpenSplit, EpochsGoThroughThePart) {
  const SplitData split = opened_split(DrawnFiles::synthetic(50, 3), "split = 0.3");
  std::set<int64_t> seen;
  for (int64_t i = 0; i < split.train->size(); ++i)
    seen.insert(split.train->order(1, 2, i, /*shuffle=*/true));
  EXPECT_EQ(std::ssize(seen), split.train->size());
  EXPECT_EQ(*seen.rbegin(), split.train->size() - 1);
}

int64_t people_in_both(const SplitData& split, const char* array) {
  std::set<int64_t> trained, held_out;
  for (const auto& [data, people] : {std::pair(split.train, &trained), std::pair(split.held_out, &held_out)})
    for (int64_t i = 0; i < data->size(); ++i)
      people->insert(static_cast<int64_t>(data->get({&i, 1}, {})[array].flatten()[0].item<double>()) % 7);
  std::erase_if(trained, [&](int64_t person) { return !held_out.contains(person); });
  return std::ssize(trained);
}

TEST(OpenSplit, ColumnsAndArraysKeepTheirGroupsOnOneSide) {
  const DrawnFiles files;
  const std::string by = "split = 0.3\nsplit_by = 'person'";
  EXPECT_EQ(people_in_both(opened_split(files.hdf5(70, 2), by), "input"), 0);
  EXPECT_GT(people_in_both(opened_split(files.hdf5(70, 2), "split = 0.3"), "input"), 0);
  // Row i of the table has id 3 i + 1, and person i % 7.
  const SplitData table = opened_split(files.csv(70, 2, true), by);
  std::set<int64_t> trained, held_out;
  for (int64_t i = 0; i < table.train->size(); ++i)
    trained.insert((table.train->get({&i, 1}, {})["input"][0][0].item<int64_t>() / 3) % 7);
  for (int64_t i = 0; i < table.held_out->size(); ++i)
    held_out.insert((table.held_out->get({&i, 1}, {})["input"][0][0].item<int64_t>() / 3) % 7);
  EXPECT_EQ(trained.size() + held_out.size(), 7U);
  EXPECT_THAT(split_error(files.csv(70, 2, true), "split = 0.3\nsplit_by = 'persn'"),
              HasSubstr("has no column 'persn'; did you mean 'person'?"));
  EXPECT_THAT(split_error(files.hdf5(70, 2), "split = 0.3\nsplit_by = 'persn'"),
              HasSubstr("data.eval.split_by"));
  EXPECT_THAT(split_error(files.images(12, 2), "split = 0.3\nsplit_by = 'person'"),
              HasSubstr("have no columns"));
}

TEST(OpenSplit, ShardsAreDividedByAColumnOfTexts) {
  const std::string mds =
      "kind = 'mds'\npath = '" + kGoldenData +
      "mds/all'\ncolumns = { input = 'array_float16', target = 'int' }\nnum_classes = 100\n";
  const int64_t all = make_dataset(split_recipe(mds, "split = 2").at("data").at("train"))->size();
  const SplitData split = opened_split(mds, "split = 2\nsplit_by = 'label'");
  EXPECT_EQ(split.train->size() + split.held_out->size(), all);
  EXPECT_GT(split.held_out->size(), 0);
  EXPECT_THAT(split_error(mds, "split = 2\nsplit_by = 'lable'"), HasSubstr("data.eval.split_by = \"lable\""));
}

TEST(OpenSplit, TablesThatCannotBeDividedAreSaidOnce) {
  const DrawnFiles files;
  const std::string table = files.csv(40, 2, true), path = table.substr(table.find("path"));
  EXPECT_THAT(split_error(files.csv(40, 2, false), "split = 0.5\nsplit_by = 'y'"),
              HasSubstr("the recipe has two uses of the column 'y'"));
  EXPECT_THAT(split_error("kind = 'csv'\nwindow = 3\n" + path, "split = 0.5"),
              HasSubstr("data.train.window = 3: expected target"));
  EXPECT_THAT(split_error(table + "window = 3\nseries = 'person'\norder = 'person'\n", "split = 0.5"),
              HasSubstr("two uses of the column 'person'"));
  EXPECT_THAT(split_error(table + "window = 8\n", "split = 0.1"),
              HasSubstr("data.eval.split = 0.1: the last rows of a series are at most 4, too few for the 9"));
  const std::string missing = split_error("kind = 'csv'\npath = '/no/such.csv'\n", "split = 0.5");
  EXPECT_EQ(missing.find("data.train.path"), missing.rfind("data.train.path")) << missing;
}

TEST(OpenSplit, TablesAreFittedOnTheTrainingPart) {
  const DrawnFiles files;
  const SplitData split = opened_split(files.csv(40, 2, true) + "normalize = true\n", "split = 0.5");
  const SplitData plain = opened_split(files.csv(40, 2, true), "split = 0.5");
  double sum = 0;
  for (int64_t i = 0; i < plain.train->size(); ++i)
    sum += plain.train->get({&i, 1}, {})["input"][0][0].item<double>();
  const double mean = sum / static_cast<double>(plain.train->size());
  const FittedTable fitted = FittedTable::from_json(split.train->fitted());
  EXPECT_NEAR(fitted.mean[0], mean, 1e-9);
  EXPECT_NE(fitted.mean[0], 1 + 3 * 39 / 2.0);
  EXPECT_EQ(split.held_out->fitted(), split.train->fitted());
  for (int64_t i = 0; i < plain.held_out->size(); ++i) {
    const double stored = plain.held_out->get({&i, 1}, {})["input"][0][0].item<double>();
    EXPECT_NEAR(split.held_out->get({&i, 1}, {})["input"][0][0].item<double>(),
                (stored - mean) / fitted.std[0], 1e-6);
  }
}

TEST(OpenSplit, HeldOutCategoriesThatTrainingLacksAreZero) {
  const Scratch scratch;
  std::string text = "x,city,y\n";
  for (int64_t i = 0; i < 20; ++i)
    text += std::to_string(i) + ",c" + std::to_string(i) + "," + std::to_string(i) + ".5\n";
  write_text(scratch.path("t.csv"), text);
  const SplitData split =
      opened_split("kind = 'csv'\ntarget = 'y'\ninputs = ['x']\none_hot = ['city']\npath = '" +
                       scratch.path("t.csv") + "'\n",
                   "split = 5");
  EXPECT_EQ(split.train->spec().shapes.at("input"), (Shape{16}));
  for (int64_t i = 0; i < 5; ++i)
    EXPECT_EQ(split.held_out->get({&i, 1}, {})["input"][0].narrow(0, 1, 15).sum().item<double>(), 0);
  EXPECT_THAT(split.held_out->advice(), HasSubstr("5 of 5 held-out rows have a value in column 'city'"));
}

constexpr const char* kFlip = "[[data.train.transforms]]\nkind = 'flip'\n";

TEST(OpenSplit, HeldOutSamplesHaveTheTransformsThatDrawNothing) {
  const DrawnFiles files;
  const std::string images = files.images(24, 2);
  const std::string crop = "[[data.train.transforms]]\nkind = 'random_crop'\nsize = 2\npadding = 1\n";
  const std::string tensor = "[[data.train.transforms]]\nkind = 'to_tensor'\n";
  const SplitData split = opened_split(images + crop + kFlip + tensor, "split = 0.25");
  const SplitData plain = opened_split(images + tensor, "split = 0.25");
  EXPECT_EQ(split.held_out->spec().describe("input"), "float32 [3, 2, 2]");
  EXPECT_EQ(samples_of(*split.held_out), samples_of(*plain.held_out));
  EXPECT_NE(samples_of(*split.train), samples_of(*plain.train));
}

TEST(OpenSplit, OwnTransformsReplaceThoseOfTraining) {
  const DrawnFiles files;
  const SplitData split =
      opened_split(files.images(24, 2) + "[[data.train.transforms]]\nkind = 'resize'\nsize = 4\n",
                   "split = 0.25\n[[data.eval.transforms]]\nkind = 'resize'\nsize = 6\n");
  EXPECT_EQ(split.held_out->spec().describe("input"), "uint8 [6, 6, 3]");
  EXPECT_EQ(split.train->spec().describe("input"), "uint8 [4, 4, 3]");
}

TEST(OpenSplit, SizesThatDrawnTransformsMakeMustBeSaid) {
  const DrawnFiles files;
  EXPECT_THAT(
      split_error(files.images(24, 2) + "[[data.train.transforms]]\nkind = 'random_resized_crop'\nsize = 8\n",
                  "split = 0.25"),
      HasSubstr("(random_resized_crop); [[data.eval.transforms]] says how they get that size"));
}

TEST(OpenSplit, DataWithoutNumbersOrOfSeveralSourcesAreRefused) {
  const DrawnFiles files;
  const std::string bytes = files.bytes(40);
  EXPECT_THAT(split_error("kind = 'webdataset'\ncommand = 'cat x.tar'\n", "split = 0.1"),
              HasSubstr("data.train.command = \"cat ...\": samples of a command have no numbers"));
  EXPECT_THAT(split_error(files.images(24, 2) + "on_bad_sample = 'skip'\n", "split = 0.1"),
              HasSubstr("data.train.on_bad_sample"));
  EXPECT_THAT(split_error(bytes, "split = 1.5"),
              HasSubstr("data.eval.split = 1.5: expected a share below 1"));
  EXPECT_THAT(split_error(bytes, "split = 1"), HasSubstr("expected a share below 1"));
  EXPECT_THAT(split_error(bytes, "split = 40"), HasSubstr("data.eval.split = 40.0: there are 40 samples"));
  EXPECT_THAT(split_error(bytes + "split = 0.9\n", "split = 0.1"), HasSubstr("is data.eval.split"));
  EXPECT_THAT(split_error(bytes, "split = 0.1\npath = 'x'"), HasSubstr("excludes data.eval.path"));
  EXPECT_THAT(split_error(bytes, "split = 0.1\nkind = 'bytes'"), HasSubstr("leave this key out"));
}

}  // namespace
}  // namespace tutti
