#include "commands/batch_find.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "commands/check.h"
#include "commands/local_train.h"
#include "job/recipe_catalogs.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Setting recipe_of_batches(int64_t samples, const std::string& more = "", int64_t batch = 12,
                          const std::string& grad_accum = "\"auto\"") {
  return resolve_recipe(parse_recipe(R"(
seed = 1
[model]
kind = "mlp"
hidden = [64]
[data.train]
kind = "synthetic"
shape = [128]
samples = )" + std::to_string(samples) +
                                         "\nbatch_size = " + std::to_string(batch) + R"(
[optimizer]
kind = "adam"
[train]
max_duration = "2ba"
grad_accum = )" + grad_accum + '\n' + more,
                                     "recipe.toml"));
}

std::vector<int64_t> sizes_of(const std::vector<TriedBatch>& tried) {
  std::vector<int64_t> sizes;
  for (const TriedBatch& batch : tried) sizes.push_back(batch.samples);
  return sizes;
}

std::string budget_mb(double mb) { return "[device]\nmemory_budget_mb = " + std::to_string(mb) + '\n'; }

// A run as a user would start it, with checkpoints.
void train_within(double limit, int64_t batch) {
  const Scratch folder;
  LocalRunOptions options;
  options.run_dir = folder.path("run");
  const Setting recipe = recipe_of_batches(512, budget_mb(limit), batch, /*grad_accum=*/"1");
  EXPECT_EQ(train_in_one_process(recipe, options).exit_code, 0);
}

TEST(BatchFindTest, SizesEndWithTheDataOfARank) {
  const auto tried = try_batches(recipe_of_batches(100), {.ranks = 2, .steps = 2});
  EXPECT_THAT(sizes_of(tried), ElementsAre(1, 2, 4, 8, 16, 32, 50));
  for (const TriedBatch& batch : tried) {
    EXPECT_EQ(batch.trouble, "");
    EXPECT_GT(batch.samples_per_s, 0);
  }
  EXPECT_GT(tried.back().memory_mb, tried.front().memory_mb);
}

TEST(BatchFindTest, TheLargestSizeWithinTheBudgetIsFound) {
  const double limit = try_steps(recipe_of_batches(512, "", /*batch=*/192), {}).memory_mb;
  const auto tried = try_batches(recipe_of_batches(512, budget_mb(limit)), {.steps = 1});
  int64_t largest = 0, least_without = 512;
  for (const TriedBatch& batch : tried) {
    if (!batch.trouble.empty()) {
      least_without = std::min(least_without, batch.samples);
      continue;
    }
    largest = std::max(largest, batch.samples);
    EXPECT_LE(batch.memory_mb, limit);
  }
  EXPECT_GE(largest, 128);
  EXPECT_LE(largest, 208);
  EXPECT_GT(least_without, largest);
  train_within(limit, largest);
  EXPECT_LE(least_without - largest, largest / 16);
}

TEST(BatchFindTest, OneSampleMayBeTooLarge) {
  const Setting recipe = recipe_of_batches(16, budget_mb(0.001));
  const auto tried = try_batches(recipe, {.steps = 1});
  ASSERT_EQ(tried.size(), 1U);
  EXPECT_THAT(tried[0].trouble, HasSubstr("ran out of memory"));
  testing::internal::CaptureStdout();
  EXPECT_EQ(find_batch(recipe, {.steps = 1}), 1);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("not even one sample fits"));
}

}  // namespace
}  // namespace tutti
