#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "io/checkpoint/checkpoint_catalog.h"
#include "job/checkpoint_options.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

BestSettings settings_of(const std::string& table) {
  const Setting recipe = parse_recipe("best = " + table, "r.toml");
  return BestSettings::read(resolve_section(section_catalog<BestKeys>(), *recipe.find("best"), {}), recipe);
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(BestCheckpointsTest, TheNameSaysWhatIsBetterIfTheModeDoesNot) {
  EXPECT_FALSE(settings_of("{ metric = 'MulticlassAccuracy' }").less_is_better);
  EXPECT_TRUE(settings_of("{ metric = 'CrossEntropy' }").less_is_better);
  for (const char* name : {"eval/rmse", "MSE", "loss/mae"})
    EXPECT_TRUE(settings_of(std::string("{ metric = '") + name + "' }").less_is_better) << name;
  EXPECT_FALSE(settings_of("{ metric = 'CrossEntropy', mode = 'max' }").less_is_better);
}

TEST(BestCheckpointsTest, WrongMembersAreErrors) {
  EXPECT_THAT(error_of([] { settings_of("{ metrc = 'a' }"); }), HasSubstr("did you mean metric?"));
  EXPECT_THAT(error_of([] { settings_of("{ mode = 'max' }"); }), HasSubstr("metric is missing"));
  EXPECT_THAT(error_of([] { settings_of("{ metric = 'a', keep = 0 }"); }), HasSubstr("keep = 0"));
  EXPECT_THAT(error_of([] { settings_of("'MulticlassAccuracy'"); }), HasSubstr("expected a table"));
}

TEST(BestCheckpointsTest, AValueIsOneOfTheBestUntilAsManyAreBetter) {
  BestValues values(settings_of("{ metric = 'a', keep = 2 }"));
  EXPECT_TRUE(values.observe(1));
  EXPECT_TRUE(values.observe(0.5));
  EXPECT_FALSE(values.observe(0.5)) << "of equal ones the earlier";
  EXPECT_TRUE(values.observe(2));
  EXPECT_FALSE(values.observe(std::nan("")));
  EXPECT_FALSE(values.state().measured);
  EXPECT_THAT(values.state().best, ElementsAre(2, 1));
}

TEST(BestCheckpointsTest, TheBestComeFirstAndOfEqualOnesTheEarlier) {
  const auto best = best_checkpoints(settings_of("{ metric = 'loss', keep = 3 }"),
                                     {{"ep1", 3}, {"ep2", 1}, {"ep3", 2}, {"ep4", 1}, {"ep5", 5}});
  EXPECT_THAT(best, ElementsAre("ep2", "ep4", "ep3"));
}

}  // namespace
}  // namespace tutti
