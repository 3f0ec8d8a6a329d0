#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "commands/check.h"
#include "commands/local_train.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

const std::filesystem::path kExamples = TUTTI_SOURCE_DIR "/examples";

// All but those of cpp/, whose programs tests/runs/install_test.py builds.
std::vector<std::string> example_recipes() {
  std::vector<std::string> names;
  for (const std::filesystem::path folder : {"", "composer"})
    for (const auto& entry : std::filesystem::directory_iterator(kExamples / folder))
      if (entry.path().extension() == ".toml") names.push_back(folder / entry.path().filename());
  std::ranges::sort(names);
  return names;
}

class ExampleRecipes : public testing::TestWithParam<std::string> {
 protected:
  // The example for three batches, which writes into the test's folder alone.
  Setting three_batches() const {
    const std::string file = kExamples / GetParam(), text = read_text(file);
    const bool is_halved = text.find("scale_schedule_ratio = 0.5") != std::string::npos;
    std::vector<std::string> overrides = {is_halved ? "train.max_duration=6ba" : "train.max_duration=3ba"};
    if (text.find("[data.eval]") != std::string::npos) overrides.push_back("data.eval.subset_num_batches=1");
    if (text.find("save_folder") != std::string::npos)
      overrides.push_back("checkpoint.save_folder=" + folder_.path("saved"));
    return resolve_recipe(read_recipe(file, overrides));
  }

  Scratch folder_;
};

TEST_P(ExampleRecipes, AreCheckedAndTrainThreeBatches) {
  const Setting three = three_batches();
  EXPECT_NO_THROW(check_text(three));
  LocalRunOptions options;
  options.ranks = 1;
  options.run_dir = folder_.path("run");
  options.quiet = true;
  train_in_one_process(three, options);
  std::istringstream lines(read_text(options.run_dir + "/metrics.jsonl"));
  int batches = 0;
  for (std::string line; std::getline(lines, line);) batches += line.find("\"loss\": ") != std::string::npos;
  EXPECT_EQ(batches, 3);
}

INSTANTIATE_TEST_SUITE_P(All, ExampleRecipes, testing::ValuesIn(example_recipes()), [](const auto& info) {
  std::string name = info.param.substr(0, info.param.find('.'));
  std::ranges::replace(name, '/', '_');
  return name;
});

}  // namespace
}  // namespace tutti
