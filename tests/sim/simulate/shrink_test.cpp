#include "sim/simulate/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "recipe/toml_reader.h"

namespace tutti {
namespace {

constexpr const char* kWritten = R"(
run_name = "big"
seed = 3
algorithms = [{ kind = "ema" }, { kind = "sam" }, { kind = "swa" }]
[model]
kind = "gpt"
n_embd = 8
[data.train]
kind = "bytes"
path = "text.txt"
batch_size = 9
shuffle = true
[optimizer]
kind = "adamw"
[sharding]
strategy = "full"
prefetch = false
[train]
max_duration = "12ba"
grad_accum = 3
)";

FailingCase big_case() {
  return {parse_recipe(kWritten, "big.toml"), 6,
          parse_recipe(
              "starts = 2\n[[fault]]\nkind = 'death'\n[[fault]]\nkind = 'hang'\n[[fault]]\nkind = 'slow'\n",
              "plan.toml"),
          17, "rank 3 holds other weights after step 12"};
}

bool has_kind(const Setting& table, const char* list, const std::string& kind) {
  const Setting* items = table.find(list);
  return items && std::ranges::any_of(items->array(),
                                      [&](const Setting& item) { return item.at("kind").text() == kind; });
}

TEST(ShrinkTest, LeavesWhatTheViolationNeeds) {
  const auto find = [](const FailingCase& candidate) -> std::optional<SeedFinding> {
    const Setting& recipe = candidate.recipe;
    const bool fails = candidate.ranks >= 3 && recipe.has("sharding") &&
                       recipe.at("sharding").has("strategy") && has_kind(recipe, "algorithms", "sam") &&
                       has_kind(candidate.plan, "fault", "hang") && recipe.has("model") &&
                       recipe.at("model").has("kind") && recipe.has("data") && recipe.has("train") &&
                       recipe.at("train").has("max_duration");
    if (!fails) return SeedFinding{1, "another finding"};
    return SeedFinding{candidate.seed + 1, "rank 2 holds other weights after step 7"};
  };
  int told = 0;
  const FailingCase small = shrink(big_case(), find, 1000, [&](const FailingCase&, int) { ++told; });
  EXPECT_EQ(small.ranks, 3);
  EXPECT_EQ(write_recipe(small.plan), "starts = 1\n\n[[fault]]\nkind = \"hang\"\n");
  EXPECT_EQ(small.recipe.at("model").at("kind").text(), "mlp");
  EXPECT_EQ(small.recipe.at("train").at("max_duration").text(), "1ba");
  EXPECT_EQ(small.recipe.at("algorithms").array().size(), 1u);
  EXPECT_FALSE(small.recipe.has("run_name") || small.recipe.has("optimizer"));
  EXPECT_FALSE(small.recipe.at("sharding").has("prefetch"));
  EXPECT_EQ(small.seed, 17 + static_cast<uint64_t>(told));
}

// Their defaults are larger.
TEST(ShrinkTest, KeysOfModelsDataAndTheDurationStay) {
  int tries = 0;
  const auto never = [&tries](const FailingCase& candidate) {
    ++tries;
    const Setting& recipe = candidate.recipe;
    const bool smallest = recipe.has("model") && recipe.at("model").has("hidden");
    if (recipe.has("model") && !smallest) EXPECT_TRUE(recipe.at("model").has("n_embd"));
    if (recipe.has("data") && recipe.at("data").has("train"))
      EXPECT_TRUE(recipe.at("data").at("train").has("batch_size"));
    if (recipe.has("train")) EXPECT_TRUE(recipe.at("train").has("max_duration"));
    return std::optional<SeedFinding>();
  };
  shrink(big_case(), never, 1000);
  EXPECT_GT(tries, 20);
}

TEST(ShrinkTest, WithoutTriesOrAViolationNothingChanges) {
  const std::string before = write_recipe(big_case().recipe);
  const auto never = [](const FailingCase&) { return std::optional<SeedFinding>(); };
  EXPECT_EQ(write_recipe(shrink(big_case(), never, 1000).recipe), before);
  const auto always = [](const FailingCase& failing) {
    return std::optional(SeedFinding{1, failing.finding});
  };
  EXPECT_EQ(write_recipe(shrink(big_case(), always, 0).recipe), before);
}

}  // namespace
}  // namespace tutti
