#include "training/schedules/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/recipe/section.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Setting section(const std::string& kind, const char* t_warmup, const char* t_max) {
  return section_with({{"kind", kind},
                       {"t_warmup", std::string(t_warmup)},
                       {"t_max", std::string(t_max)},
                       {"alpha", 0.5},
                       {"alpha_i", 1.0},
                       {"alpha_f", 0.0},
                       {"scale_warmup", true}});
}

void expect_refusal(const Setting& section, const Horizon& horizon, const char* key) {
  EXPECT_THAT([&] { make_schedule(section, horizon); },
              ThrowsMessage<UserError>(HasSubstr(std::string("section.") + key)));
}

TEST(Schedule, UnlikeWarmupAndEndIsAUserErrorThatNamesTheKey) {
  expect_refusal(section("linear_with_warmup", "80sp", "4ep"), {Time::parse("4ep"), 10}, "t_max");
}

TEST(Schedule, ConstantAfterAWarmupIsSoAtItsEndToo) {
  const Schedule alpha =
      make_schedule(section("constant_with_warmup", "10ba", "4ep"), {Time::parse("4ep"), 10});
  EXPECT_EQ(alpha({.batch = 5}), 0.25);
  EXPECT_EQ(alpha({.batch = 39}), 0.5);
  EXPECT_EQ(alpha({.batch = 40}), 0.5);
}

TEST(Schedule, ConstantAfterAWarmupMustReachTheEndOfTheTraining) {
  expect_refusal(section("constant_with_warmup", "10ba", "3ep"), {Time::parse("4ep"), 10}, "t_max");
}

// Six batches, stretched to twelve of forty.
TEST(Schedule, AWarmupThatTheRatioStretchesIsLeftAtItsTop) {
  const Horizon horizon{Time::parse("40ba"), 10, 2.0};
  const auto alpha = [&](const char* kind, bool composer, int64_t batch) {
    Horizon own = horizon;
    own.composer = composer;
    return make_schedule(section(kind, "6ba", "1dur"), own)({.batch = batch});
  };
  for (const bool composer : {false, true}) EXPECT_DOUBLE_EQ(alpha("linear_with_warmup", composer, 3), 0.25);
  EXPECT_DOUBLE_EQ(alpha("linear_with_warmup", false, 9), 0.75);
  EXPECT_DOUBLE_EQ(alpha("linear_with_warmup", false, 12), 1.0);
  EXPECT_DOUBLE_EQ(alpha("linear_with_warmup", false, 26), 0.5);
  EXPECT_DOUBLE_EQ(alpha("linear_with_warmup", true, 6), 1.0) << "half way up";
  EXPECT_DOUBLE_EQ(alpha("cosine_annealing_with_warmup", false, 26), 0.5);
  EXPECT_DOUBLE_EQ(alpha("constant_with_warmup", false, 11), 0.5 * 11 / 12);
}

TEST(Schedule, WithoutAWayToGoIsRefused) {
  for (const char* kind : {"linear", "cosine_annealing"})
    expect_refusal(section(kind, "0ba", "0ba"), {Time::parse("4ep"), 10}, "t_max");
}

// Composer's has no number to give there. Recipes cannot ask for such a power.
TEST(Schedule, PowersWithoutARealValueAreRefused) {
  const Horizon horizon{Time::parse("4ep"), 10};
  const auto alpha = [&](const char* kind, const char* key, double value) {
    return make_schedule(section_with({{"kind", std::string(kind)},
                                       {key, value},
                                       {"t_max", std::string("20ba")},
                                       {"decay_period", std::string("10ba")},
                                       {"alpha_f", 0.0}}),
                         horizon);
  };
  const Schedule root = alpha("polynomial", "power", -1.0), alternating = alpha("exponential", "gamma", -0.5);
  EXPECT_EQ(root({.batch = 10}), 2.0);
  EXPECT_THROW(root({.batch = 20}), UserError);
  EXPECT_EQ(alternating({.batch = 20}), 0.25);
  EXPECT_THROW(alternating({.batch = 5}), UserError);
}

TEST(Schedule, IsNotTimedByTheWallClock) {
  expect_refusal(section("linear", "0ba", "90sec"), {Time::parse("4ep"), 10}, "t_max");
}

TEST(Schedule, WarmupOfWhichTheRatioLeavesNothingIsRefused) {
  expect_refusal(section("linear_with_warmup", "1ba", "4ep"), {Time::parse("2ep"), 10, 0.5}, "t_warmup");
}

// 0.58 of 10 batches is 5.8, and five times that 29; of 50 batches it is a little less, which is cut to 28.
TEST(Schedule, PartOfATrainingIsCutAsComposerDoes) {
  const Horizon horizon{Time::parse("5ep"), 10};
  EXPECT_EQ(convert_time(Time::parse("0.58dur"), horizon, 1.0).text(), "29ba");
}

}  // namespace
}  // namespace tutti
