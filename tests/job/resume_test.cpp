#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "commands/inspect.h"
#include "commands/local_train.h"
#include "io/json/json_line.h"
#include "runtime/disk.h"
#include "sim/invariants/invariants.h"
#include "tests/actors/everything.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

constexpr const char* kImages = R"(
[model]
kind = "resnet_cifar"
width = 2
[scheduler]
kind = "reduce_lr_on_plateau"
monitor = "metrics/often/CrossEntropy"
patience = 0
threshold = 0.5
factor = 0.5
[[callbacks]]
kind = "image_visualizer"
interval = "2ba"
)";

constexpr const char* kText = R"(
[model]
kind = "gpt"
n_layer = 1
n_head = 2
n_embd = 8
n_positions = 8
dropout = 0.2
[scheduler]
kind = "linear_with_warmup"
t_warmup = "2ba"
[[callbacks]]
kind = "generate"
prompts = ["ab", [1, 2]]
interval = "2ba"
max_new_tokens = 2
)";

std::string images() { return with_samples(kEverything, "shape = [3, 8, 8]\n") + kImages; }
std::string text() {
  std::string recipe = with_samples(kEverything, "shape = [8]\ntargets = \"sequence\"\n") + kText;
  for (auto at = recipe.find("\"CrossEntropy\""); at != std::string::npos;
       at = recipe.find("\"CrossEntropy\""))
    recipe.replace(at + 1, 0, "Language");
  return recipe;
}

void train_with_all(const std::string& recipe, const std::string& run_dir, const std::string& resume = "") {
  LocalRunOptions options;
  options.ranks = 2;
  options.quiet = true;
  options.run_dir = run_dir;
  options.resume = resume;
  options.prepare = add_steering;
  train_in_one_process(recipe_of(recipe), options);
}

int64_t step_of(const std::string& line) {
  return line.starts_with("{") ? json_integer(line, "step", -1) : std::stoll(line);
}

// The lines of metrics.jsonl and the CSV file for steps after this one.
std::map<std::string, std::vector<std::string>> logged_after(const std::string& run_dir, int64_t step) {
  auto files = logged_lines(PosixDisk(), run_dir);
  files["metrics-rank0.csv"].erase(files["metrics-rank0.csv"].begin());  // the columns' names
  for (auto& [name, lines] : files)
    std::erase_if(lines, [&](const std::string& line) { return step_of(line) <= step; });
  return files;
}

class ResumeTest : public testing::TestWithParam<std::string (*)()> {};

// Each of these runs resumes from the one before it.
TEST_P(ResumeTest, ARunResumedAfterAnyStepHasTheSameBits) {
  const std::string recipe = GetParam()();
  const Scratch folder;
  const std::string whole = folder.path("whole");
  train_with_all(recipe, whole);
  std::map<int64_t, std::string> names;
  for (const auto& name : PosixDisk().list(whole + "/checkpoints"))
    if (name.starts_with("ep")) names[std::stoll(name.substr(name.find("ba") + 2))] = name;
  EXPECT_THAT(names, testing::SizeIs(12));
  std::string from = whole;
  for (const auto& [step, name] : names) {
    const std::string run = folder.path("from-" + name);
    train_with_all(recipe, run, from + "/checkpoints/" + name);
    EXPECT_EQ(logged_after(run, step), logged_after(whole, step)) << name;
    EXPECT_EQ(inspect_digest(run), inspect_digest(whole)) << name;
    from = run;
  }
  EXPECT_GT(logged_after(whole, 0).at("metrics-rank0.csv").size(), 100u);
}

INSTANTIATE_TEST_SUITE_P(WithEverything, ResumeTest, testing::Values(images, text));

}  // namespace
}  // namespace tutti
