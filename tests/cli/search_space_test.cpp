#include "cli/sweep/search_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cli/sweep/sweep_plan.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_of(const SearchSpace& space) {
  std::vector<std::string> names;
  for (const Assignments& setting : space.settings()) names.push_back(name_of(setting));
  return names;
}

std::string refused(const SearchSpace& space) {
  return message_of<UserError>([&] { space.settings(); });
}

TEST(SearchSpaceTest, AGridHasAllCombinationsAndCommasInListsDoNotCut) {
  EXPECT_THAT(
      names_of({.grid = {"optimizer.lr=0.1,1e-3", "model.hidden=[8, 4],\"a,b\""}}),
      ElementsAre("lr=0.1,hidden=8,4", "lr=0.1,hidden=a,b", "lr=1e-3,hidden=8,4", "lr=1e-3,hidden=a,b"));
}

TEST(SearchSpaceTest, DrawsLieInTheirRanges) {
  const SearchSpace space{.random = {"a=0.25..0.5", "b=log:1e-4..1e-1", "c=int:-1..1", "d=x,y"},
                          .draws = 200};
  std::set<std::string> whole, words;
  int small = 0;
  for (const Assignments& setting : space.settings()) {
    EXPECT_TRUE(std::stod(setting[0].second) >= 0.25 && std::stod(setting[0].second) <= 0.5);
    const double log10 = std::log10(std::stod(setting[1].second));
    EXPECT_TRUE(log10 >= -4 && log10 <= -1) << log10;
    small += log10 < -2.5 ? 1 : 0;
    whole.insert(setting[2].second);
    words.insert(setting[3].second);
  }
  EXPECT_TRUE(small > 70 && small < 130) << "half of the orders of magnitude: " << small;
  EXPECT_THAT(whole, ElementsAre("-1", "0", "1"));
  EXPECT_THAT(words, ElementsAre("x", "y"));
}

TEST(SearchSpaceTest, EqualDrawsAreOneTrial) {
  EXPECT_EQ(names_of({.random = {"k=a,b"}, .draws = 50}).size(), 2U);
}

TEST(SearchSpaceTest, MistakesAreErrors) {
  EXPECT_THAT(refused({.grid = {"a=1,,2"}}), HasSubstr("no value before or behind a comma"));
  EXPECT_THAT(refused({.grid = {"a=1", "a=2"}}), HasSubstr("the sweep has this key twice"));
  EXPECT_THAT(refused({.random = {"a=int:1.5..2"}, .draws = 1}), HasSubstr("whole numbers for int:"));
  EXPECT_THAT(refused({.random = {"a=log:x"}, .draws = 1}), HasSubstr("KEY=log:1e-4..1e-1"));
  EXPECT_THAT(refused({.grid = {"a=1"}, .draws = 2}), HasSubstr("-n: expected --random"));
}

TEST(SweepPlanTest, RungsAreFractionsByPowersOfEta) {
  SweepPlan plan{.halves = true};
  plan.trials.resize(9);
  EXPECT_THAT(plan.rungs_ahead(), ElementsAre("0.125dur", "0.25dur", "0.5dur"));
  plan.eta = 3;
  EXPECT_THAT(plan.rungs_ahead(), ElementsAre("0.111111dur", "0.333333dur"));
  plan.halves = false;
  EXPECT_THAT(plan.rungs_ahead(), ElementsAre());
}

TEST(SweepPlanTest, ADamagedPlanIsAnError) {
  const Scratch scratch;
  EXPECT_THAT(message_of<UserError>([&] { SweepPlan::read(scratch.path()); }),
              HasSubstr("it has no sweep.toml"));
  write_text(scratch.path("sweep.toml"), "recipe = 'x'\n");
  EXPECT_THAT(message_of<UserError>([&] { SweepPlan::read(scratch.path()); }), HasSubstr("sweep.toml"));
}

TEST(SweepPlanTest, AnEditedPlanIsData) {
  const Scratch scratch;
  const auto text = [](const std::string& eta, const std::string& name) {
    return "recipe = 'r.toml'\nset = []\ngrid = []\nrandom = []\ndraws = 0\nseed = 0\nranks = 1\nhalves = "
           "true\nmetric = ''\neta = " +
           eta + "\n[[trials]]\nname = '" + name + "'\nset = []\n";
  };
  const auto why = [&](const std::string& eta, const std::string& name) {
    write_text(scratch.path("sweep.toml"), text(eta, name));
    return message_of<UserError>([&] { SweepPlan::read(scratch.path()); });
  };
  for (const char* eta : {"0", "1", "101"})
    EXPECT_THAT(why(eta, "lr=1"), HasSubstr("expected an integer from 2 to 100")) << eta;
  for (const char* name : {"../out", "/out", "..", "a/b", ""})
    EXPECT_THAT(why("2", name), HasSubstr("expected the name of a trial")) << name;
  write_text(scratch.path("sweep.toml"), text("2", "lr=1"));
  EXPECT_EQ(SweepPlan::read(scratch.path()).trials.size(), 1U);
}

}  // namespace
}  // namespace tutti
