#include "training/schedules/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/recipe/section.h"
#include "training/settings.h"

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

TEST(Schedule, OfARunWithoutStepsIsThatOfOne) {
  TrainSettings settings;
  settings.max_duration = Time::parse("0ba");
  for (const bool composer : {false, true}) {
    settings.composer = composer;
    const Horizon horizon = settings.horizon(settings.max_duration, 10, 0.1);
    EXPECT_EQ(horizon.unscaled_duration.text(), "1ba");
    for (const char* kind : {"linear", "cosine_annealing"})
      EXPECT_EQ(make_schedule(section(kind, "0ba", "1dur"), horizon)({}), 1.0) << kind;
    expect_refusal(section("linear", "0ba", "0ba"), horizon, "t_max");
  }
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

Setting warmup_stable_decay_of(const char* rise, const char* fall, const char* t_decay = "0.5dur") {
  return section_with({{"kind", std::string("warmup_stable_decay")},
                       {"t_warmup", std::string("4ba")},
                       {"t_decay", std::string(t_decay)},
                       {"t_max", std::string("1dur")},
                       {"warmup_type", std::string(rise)},
                       {"decay_type", std::string(fall)},
                       {"min_lr_ratio", 0.1},
                       {"scale_warmup", false}});
}

// Of get_wsd_schedule (transformers 5.0.0) for 20 steps, at steps 0, 1, 3, 4, 9, 10, 12, 19 and 20.
TEST(Schedule, WarmupStableDecayIsThatOfTransformers) {
  const std::vector<std::pair<Setting, std::vector<double>>> cases = {
      {warmup_stable_decay_of("linear", "cosine"),
       {0.1, 0.325, 0.775, 1.0, 1.0, 1.0, 0.9140576474687263, 0.12202456766718092, 0.1}},
      {warmup_stable_decay_of("cosine", "linear"),
       {0.1, 0.2318019484660536, 0.8681980515339464, 1.0, 1.0, 1.0, 0.8200000000000001, 0.19, 0.1}},
      {warmup_stable_decay_of("1-sqrt", "1-sqrt"),
       {0.1, 0.22057713659400527, 0.55, 1.0, 1.0, 1.0, 0.5975077640500379, 0.14618503175453762, 0.1}},
  };
  for (const auto& [section, expected] : cases) {
    const Schedule alpha = make_schedule(section, {Time::parse("20ba"), 10});
    const std::vector<int64_t> batches = {0, 1, 3, 4, 9, 10, 12, 19, 20};
    for (std::size_t i = 0; i < batches.size(); ++i)
      EXPECT_NEAR(alpha({.batch = batches[i]}), expected[i], 1e-12) << batches[i];
  }
}

TEST(Schedule, ADecayBeginsAfterTheWarmup) {
  const Horizon horizon{Time::parse("20ba"), 10};
  expect_refusal(warmup_stable_decay_of("linear", "linear", "17ba"), horizon, "t_decay");
  expect_refusal(warmup_stable_decay_of("linear", "linear", "17sp"), horizon, "t_decay");
  EXPECT_EQ(make_schedule(warmup_stable_decay_of("linear", "linear", "16ba"), horizon)({.batch = 4}), 1.0);
}

}  // namespace
}  // namespace tutti
