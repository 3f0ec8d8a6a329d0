#include "recipe/recipe_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

constexpr const char* kSpace = R"(
run_name = "drawn"
[[algorithms]]
kind = "ema"
[[draw]]
options = [{ ranks = 4, tags = ["halves"] }, { ranks = 3 }]
[[draw]]
options = [
  { with = ["halves"], sharding = { strategy = "hybrid", shard_size = 2 } },
  { sharding = { strategy = "full" } } ]
[[draw]]
key = "train.grad_accum"
values = [1, 2, "auto"]
probability = 0.5
[[draw]]
least = 0
most = 2
options = [{ algorithms = [{ kind = "sam" }] }, { algorithms = [{ kind = "swa" }] },
           { algorithms = [{ kind = "lora" }] }]
)";

RecipeSpace space_of(const std::string& toml, const std::vector<std::string>& overrides = {}) {
  return RecipeSpace(parse_recipe(toml, "space.toml", overrides));
}

TEST(RecipeSpaceTest, ASeedAndATryDrawOneRecipe) {
  const RecipeSpace space = space_of(kSpace);
  std::set<std::string> recipes;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const std::string recipe = write_recipe(space.draw(seed, 0, 2).recipe);
    EXPECT_EQ(write_recipe(space.draw(seed, 0, 2).recipe), recipe);
    recipes.insert(recipe);
  }
  EXPECT_GT(recipes.size(), 20u);
  EXPECT_NE(write_recipe(space.draw(1, 0, 2).recipe), write_recipe(space.draw(1, 1, 2).recipe));
}

TEST(RecipeSpaceTest, WeightsSayHowLikelyOptionsAre) {
  const RecipeSpace space = space_of(
      "[[draw]]\noptions = [{ weight = 9, seed = 1 }, { seed = 2 }]\n"
      "[[draw]]\nmost = 2\nleast = 2\noptions = [{ weight = 9, run_name = 'a' }, { train.precision = 'fp32' "
      "}]");
  int first = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Setting recipe = space.draw(seed, 0, 2).recipe;
    first += recipe.at("seed").integer() == 1;
    EXPECT_TRUE(recipe.find("run_name") && recipe.find("train")) << "an option is drawn twice";
  }
  EXPECT_NEAR(first, 360, 25);
  EXPECT_THAT(
      tutti::message_of<UserError>([] { space_of("[[draw]]\noptions = [{ weight = 0, seed = 1 }]"); }),
      HasSubstr("space.toml:2: draw.0.options.0.weight = 0: expected a weight from 1 to 1000"));
}

TEST(RecipeSpaceTest, TagsSayWhatGoesTogetherAndListsGrow) {
  const RecipeSpace space = space_of(kSpace);
  std::map<std::string, int> strategies;
  std::map<std::size_t, int> algorithms;
  int without = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const DrawnRecipe drawn = space.draw(seed, 0, 2);
    const std::string strategy = drawn.recipe.at("sharding").at("strategy").text();
    ++strategies[strategy + std::to_string(drawn.ranks)];
    const auto& kinds = drawn.recipe.at("algorithms").array();
    ++algorithms[kinds.size()];
    std::set<std::string> different;
    for (const Setting& algorithm : kinds) different.insert(algorithm.at("kind").text());
    EXPECT_EQ(different.size(), kinds.size());
    EXPECT_EQ(kinds[0].at("kind").text(), "ema");
    EXPECT_EQ(kinds.back().at("kind").path, "algorithms." + std::to_string(kinds.size() - 1) + ".kind");
    if (!drawn.recipe.find("train")) ++without;
    EXPECT_FALSE(drawn.recipe.find("ranks") || drawn.recipe.find("draw") || drawn.recipe.find("tags"));
  }
  EXPECT_EQ(strategies.size(), 3u);
  EXPECT_EQ(strategies["hybrid3"], 0);
  EXPECT_NEAR(strategies["full3"], 200, 50);
  EXPECT_NEAR(without, 200, 50);
  for (const std::size_t size : {1, 2, 3}) EXPECT_NEAR(algorithms[size], 133, 50);
}

TEST(RecipeSpaceTest, ValuesOfTheCommandLineStay) {
  const RecipeSpace space = space_of(kSpace, {"sharding.strategy=none"});
  for (uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(space.draw(seed, 0, 2).recipe.at("sharding").at("strategy").text(), "none");
}

TEST(RecipeSpaceTest, MistakesAreNamed) {
  EXPECT_THAT(tutti::message_of<UserError>([] { space_of("[[draw]]\ntags = ['a']\noptions = [{}]\n"); }),
              HasSubstr("space.toml:2"));
  EXPECT_THAT(tutti::message_of<UserError>([] { space_of("[[draw]]\noption = []\n"); }),
              HasSubstr("space.toml:2: draw.0.option"));
  EXPECT_THAT(tutti::message_of<UserError>([] { space_of("[[draw]]\noptions = []\n"); }),
              HasSubstr("there is nothing to draw from"));
  EXPECT_THAT(tutti::message_of<UserError>([] { space_of("[[draw]]\nkey = 'a'\n"); }), HasSubstr("values"));
}

TEST(RecipeSpaceTest, TagsThatNoEarlierDrawGivesAreNamed) {
  const std::string tagged = "[[draw]]\noptions = [{ seed = 1, tags = ['tokens'] }]\n";
  const auto refusal = [](const std::string& toml) {
    return tutti::message_of<UserError>([&] { space_of(toml); });
  };
  EXPECT_THAT(refusal(tagged + "[[draw]]\nwith = ['tokens', 'token']\nkey = 'seed'\nvalues = [2]\n"),
              HasSubstr("space.toml:4: draw.1.with.1 = \"token\": no option of an earlier draw has this tag; "
                        "did you mean tokens?"));
  EXPECT_THAT(refusal("[[draw]]\noptions = [{ seed = 1, with = ['tokens'] }]\n" + tagged),
              HasSubstr("space.toml:2: draw.0.options.0.with.0 = \"tokens\": no option of an earlier draw"));
  space_of(tagged + "[[draw]]\noptions = [{ seed = 2, with = ['tokens'] }]\n");
}

TEST(RecipeSpaceTest, TheMostRanksAreKnown) {
  EXPECT_EQ(space_of(kSpace).most_ranks(2), 4);
  EXPECT_EQ(space_of(kSpace).most_ranks(6), 6);
  EXPECT_EQ(space_of("[[draw]]\nkey = 'ranks'\nvalues = [1, 5, 3]\n").most_ranks(2), 5);
  EXPECT_EQ(space_of("[[draw]]\nkey = 'seed'\nvalues = [1]\n").most_ranks(1), 1);
  for (const std::string ranks : {"2000", "0", "-3"})
    EXPECT_THAT(
        tutti::message_of<UserError>([&] { space_of("[[draw]]\noptions = [{ ranks = " + ranks + " }]\n"); }),
        HasSubstr("draw.0.options.0.ranks = " + ranks + ": expected 1 to 1024 ranks"));
}

}  // namespace
}  // namespace tutti
