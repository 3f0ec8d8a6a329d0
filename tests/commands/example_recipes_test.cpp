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

// The examples that use Composer's algorithms: examples/*_recipe.toml.
std::vector<std::string> example_recipes() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TUTTI_SOURCE_DIR "/examples"))
    if (entry.path().stem().string().ends_with("_recipe")) names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

class ExampleRecipes : public testing::TestWithParam<std::string> {
 protected:
  Setting recipe(const std::vector<std::string>& overrides) const {
    return resolve_recipe(read_recipe(TUTTI_SOURCE_DIR "/examples/" + GetParam() + ".toml", overrides));
  }
};

TEST_P(ExampleRecipes, AreCheckedAndTrainThreeBatches) {
  const Setting three = recipe({"train.max_duration=3ba", "data.eval.subset_num_batches=1"});
  EXPECT_NO_THROW(check_text(three, 1, /*scan_data=*/false));
  const Scratch folder;
  LocalRunOptions options;
  options.ranks = 1;
  options.run_dir = folder.path("run");
  options.quiet = true;
  train_in_one_process(three, options);
  std::istringstream lines(read_text(options.run_dir + "/metrics.jsonl"));
  int batches = 0;
  for (std::string line; std::getline(lines, line);) batches += line.find("\"loss\": ") != std::string::npos;
  EXPECT_EQ(batches, 3);
}

INSTANTIATE_TEST_SUITE_P(All, ExampleRecipes, testing::ValuesIn(example_recipes()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tutti
