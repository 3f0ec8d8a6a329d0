#include "recipe/key_check.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tutti {
namespace {

using enum KeyType;

Setting written(Setting::Value value) { return Setting(std::move(value), "a.b", {"r.toml", 3}); }

std::string error_of(const Key& key, Setting::Value value) {
  try {
    checked(key, written(std::move(value)));
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

Setting::Array list(std::vector<Setting::Value> values) {
  Setting::Array items;
  for (auto& value : values) items.push_back(written(std::move(value)));
  return items;
}

TEST(KeyCheck, EachTypeSaysWhatItExpects) {
  const std::string text = "x";
  EXPECT_EQ(error_of({"b", kBoolean, "", ""}, int64_t{1}),
            "r.toml:3: a.b = 1: expected true or false; did you mean true?");
  EXPECT_EQ(error_of({"b", kInteger, "", ""}, 1.5), "r.toml:3: a.b = 1.5: expected an integer");
  EXPECT_EQ(error_of({"b", kNumber, "", ""}, text), "r.toml:3: a.b = \"x\": expected a number");
  EXPECT_EQ(error_of({"b", kText, "", ""}, true),
            "r.toml:3: a.b = true: expected a text; did you mean \"true\"?");
  EXPECT_EQ(error_of({"b", kPath, "", ""}, 2.0), "r.toml:3: a.b = 2.0: expected a path");
  EXPECT_EQ(error_of({"b", kPath, "", ""}, std::string()),
            "r.toml:3: a.b = \"\": expected a path, not an empty text");
  EXPECT_EQ(error_of({"b", kIntegers, "", ""}, int64_t{1}),
            "r.toml:3: a.b = 1: expected a list of integers; did you mean [1]?");
  EXPECT_EQ(error_of({"b", kIntegers, "", ""}, list({1.5})),
            "r.toml:3: a.b = 1.5: expected a list of integers");
  EXPECT_EQ(error_of({"b", kTexts, "", ""}, list({true})),
            "r.toml:3: a.b = true: expected a list of texts; did you mean \"true\"?");
  EXPECT_EQ(error_of({"b", kTime, "", ""}, std::string("20xp")),
            "r.toml:3: a.b = \"20xp\": expected a time like 10ep, 500ba, 0.5dur or 1h20m (an integer counts "
            "epochs)");
}

TEST(KeyCheck, LongValuesAreCutInMessages) {
  EXPECT_EQ(error_of({"b", kInteger, "", ""}, std::string(100, 'x')),
            "r.toml:3: a.b = \"" + std::string(59, 'x') + "...: expected an integer");
}

TEST(KeyCheck, AChoiceMayHaveAnotherName) {
  const Key key = Key{"b", kText, "none", ""}.one_of({"none", "all"}).also_written({{"EVERY", "all"}});
  EXPECT_EQ(checked(key, written(std::string("EVERY"))).text(), "all");
  EXPECT_EQ(checked(key, written(std::string("all"))).text(), "all");
  EXPECT_EQ(error_of(key, std::string("EVRY")),
            "r.toml:3: a.b = \"EVRY\": expected one of none, all, EVERY (all); did you mean \"EVERY\"?");
}

TEST(KeyCheck, AChoiceOfNoneIsADefaultValue) {
  const Key choice = Key{"b", kText, "none", ""}.one_of({"none", "all"});
  EXPECT_FALSE(choice.may_be_absent());
  EXPECT_EQ(fallback_value(choice, "a.b", {}).text(), "none");
  EXPECT_TRUE((Key{"b", kText, "none", ""}.one_of({"all"})).may_be_absent());
}

TEST(KeyCheck, AnIntegerIsANumber) {
  const Setting out = checked({"b", kNumber, "", ""}, written(int64_t{2}));
  EXPECT_EQ(std::get<double>(out.value), 2.0);
}

TEST(KeyCheck, NumbersAreFinite) {
  for (const double number : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    EXPECT_EQ(error_of({"b", kNumber, "", ""}, number),
              "r.toml:3: a.b = " + written(number).toml() + ": expected a finite number");
    EXPECT_NE(error_of({"b", kNumbers, "", ""}, list({0.5, number})), "no error");
  }
}

TEST(KeyCheck, TimesAreCountable) {
  EXPECT_EQ(error_of({"b", kTime, "", ""}, std::string("1e15ep")), "no error");
  EXPECT_NE(error_of({"b", kTime, "", ""}, std::string("1e16ep")), "no error");
  const Key key = Key{"b", kTime, "", ""}.in_units({"sec"}).at_least(1).at_most(90);
  EXPECT_EQ(error_of(key, std::string("1m30s")), "no error");
  EXPECT_EQ(error_of(key, std::string("0sec")),
            "r.toml:3: a.b = \"0sec\": expected a time in seconds like 60sec or 1m30s in [1, 90]");
  EXPECT_NE(error_of(key, std::string("91sec")), "no error");
}

TEST(KeyCheck, IntegersCountEpochs) {
  EXPECT_EQ(checked({"b", kTime, "", ""}, written(int64_t{20})).text(), "20ep");
  EXPECT_NE(error_of({"b", kTime, "", ""}, int64_t{-1}), "no error");
}

TEST(KeyCheck, ATimeMustHaveTheKeysUnit) {
  const Key key = Key{"b", kTime, "", ""}.in_units({"sec"});
  EXPECT_EQ(checked(key, written(std::string("1m30s"))).text(), "1m30s");
  EXPECT_EQ(error_of(key, std::string("10ep")),
            "r.toml:3: a.b = \"10ep\": expected a time in seconds like 60sec or 1m30s");
  EXPECT_EQ(error_of(key, int64_t{60}),
            "r.toml:3: a.b = 60: expected a time in seconds like 60sec or 1m30s; did you mean \"60sec\"?");
}

TEST(KeyCheck, ChoicesSuggestTheNearest) {
  const Key key = Key{"b", kText, "", ""}.one_of({"ordered", "native"});
  EXPECT_EQ(error_of(key, std::string("orderd")),
            "r.toml:3: a.b = \"orderd\": expected one of ordered, native; did you mean \"ordered\"?");
  EXPECT_EQ(error_of(key, std::string("native")), "no error");
}

TEST(KeyCheck, NumbersHaveChoicesToo) {
  const Key key = Key{"b", kInteger, "", ""}.one_of({"20", "32"});
  EXPECT_EQ(error_of(key, int64_t{21}), "r.toml:3: a.b = 21: expected one of 20, 32");
  EXPECT_EQ(error_of(key, int64_t{32}), "no error");
}

TEST(KeyCheck, WordsStandInPlaceOfTheType) {
  const Key key = Key{"b", kInteger, "", ""}.at_least(1).or_word("auto");
  EXPECT_EQ(checked(key, written(std::string("auto"))).text(), "auto");
  EXPECT_EQ(error_of(key, std::string("atuo")),
            "r.toml:3: a.b = \"atuo\": expected an integer >= 1 or \"auto\"; did you mean \"auto\"?");
}

TEST(KeyCheck, RangesHoldForEveryItem) {
  const Key key = Key{"b", kNumbers, "", ""}.at_least(0).less_than(1);
  EXPECT_EQ(error_of(key, list({0.0, 0.999})), "no error");
  EXPECT_EQ(error_of(key, list({0.5, 1.0})), "r.toml:3: a.b = 1.0: expected a list of numbers in [0, 1)");
  EXPECT_EQ(error_of(Key{"b", kNumber, "", ""}.more_than(0), 0.0),
            "r.toml:3: a.b = 0.0: expected a number > 0");
  EXPECT_EQ(error_of(Key{"b", kNumber, "", ""}.at_most(2), std::nan("")),
            "r.toml:3: a.b = nan: expected a finite number");
}

TEST(KeyCheck, ANumberStandsAloneOrInAList) {
  const Key key = Key{"b", kNumberOrNumbers, "none", ""}.more_than(0);
  EXPECT_EQ(checked(key, written(int64_t{2})).number(), 2.0);
  EXPECT_EQ(checked(key, written(list({int64_t{2}, 0.5}))).numbers(), (std::vector<double>{2.0, 0.5}));
  EXPECT_EQ(error_of(key, list({1.0, 0.0})),
            "r.toml:3: a.b = 0.0: expected a number or a list of numbers > 0");
}

TEST(KeyCheck, TextsAreListedOrNamed) {
  const Key key{"b", kTextsOrNamedTexts, "none", ""};
  const auto named = [](Setting::Value value) {
    return Setting::Table{{"input", Setting(std::move(value), "a.b.input", {"r.toml", 4})}};
  };
  EXPECT_EQ(error_of(key, list({std::string("x")})), "no error");
  EXPECT_EQ(error_of(key, named(std::string("images"))), "no error");
  EXPECT_EQ(error_of(key, named(int64_t{7})), "r.toml:4: a.b.input = 7: expected a text");
  EXPECT_EQ(error_of(key, Setting::Table()), "r.toml:3: [a.b]: expected a list of texts or a table of texts");
  EXPECT_EQ(error_of(key, std::string("x")),
            "r.toml:3: a.b = \"x\": expected a list of texts or a table of texts; did you mean [\"x\"]?");
}

TEST(KeyCheck, AnIntegerStandsAloneOrInAList) {
  const Key key = Key{"b", kIntegerOrIntegers, "none", ""}.at_least(1);
  EXPECT_EQ(error_of(key, int64_t{3}), "no error");
  EXPECT_EQ(error_of(key, list({int64_t{3}, int64_t{4}})), "no error");
  EXPECT_EQ(error_of(key, 3.0),
            "r.toml:3: a.b = 3.0: expected an integer or a list of integers >= 1; did you mean 3?");
  EXPECT_EQ(error_of(key, list({int64_t{3}, int64_t{0}})),
            "r.toml:3: a.b = 0: expected an integer or a list of integers >= 1");
  EXPECT_EQ(std::get<int64_t>(fallback_value({"b", kIntegerOrIntegers, "7", ""}, "a.b", {}).value), 7);
}

TEST(KeyCheck, ABooleanStandsForAnIntegerOrTexts) {
  const Key key = Key{"b", kBooleanIntegerOrTexts, "false", ""}.at_least(1);
  for (const auto& good :
       std::initializer_list<Setting::Value>{true, false, int64_t{3}, list({std::string("x")})})
    EXPECT_EQ(error_of(key, good), "no error") << written(good).toml();
  EXPECT_EQ(
      error_of(key, int64_t{0}),
      "r.toml:3: a.b = 0: expected true, false, a list of texts, or an integer >= 1; did you mean false?");
  for (const auto& bad : std::initializer_list<Setting::Value>{1.5, list({int64_t{1}}), Setting::Table()})
    EXPECT_NE(error_of(key, bad), "no error") << written(bad).toml();
  EXPECT_FALSE(fallback_value(key, "a.b", {}).boolean());
}

TEST(KeyCheck, StepsAscendFromZero) {
  const Key key = Key{"b", kIntegerOrSteps, "1", ""}.at_least(1).or_word("auto");
  const auto steps = [](std::vector<std::pair<int64_t, int64_t>> pairs) {
    std::vector<Setting::Value> items;
    for (const auto& [step, value] : pairs) items.emplace_back(list({step, value}));
    return list(std::move(items));
  };
  EXPECT_EQ(checked(key, written(steps({{0, 1}, {7, 2}}))).toml(), "[[0, 1], [7, 2]]");
  EXPECT_EQ(checked(key, written(int64_t{3})).integer(), 3);
  EXPECT_EQ(checked(key, written(std::string("auto"))).text(), "auto");
  for (const auto& bad : {steps({{1, 1}}), steps({{0, 1}, {0, 2}}), steps({{0, 1}, {7, 1}, {6, 1}}),
                          steps({{0, 0}}), list({}), list({int64_t{0}, int64_t{1}})})
    EXPECT_NE(error_of(key, bad), "no error") << written(bad).toml();
  EXPECT_EQ(
      error_of(key, 0.5),
      "r.toml:3: a.b = 0.5: expected a list of [step, integer], the first for step 0, or an integer >= 1 "
      "or \"auto\"");
}

TEST(KeyCheck, FallbacksAreReadByType) {
  const auto toml = [](KeyType type, const char* text) {
    return fallback_value({"b", type, text, ""}, "", {}).toml();
  };
  EXPECT_EQ(toml(kBoolean, "false"), "false");
  EXPECT_EQ(toml(kInteger, "-1"), "-1");
  EXPECT_EQ(toml(kNumber, "1e-8"), "1e-08");
  EXPECT_EQ(toml(kNumber, "2"), "2.0");
  EXPECT_EQ(toml(kText, "20"), "\"20\"");
  EXPECT_EQ(toml(kIntegers, "[128, 64]"), "[128, 64]");
  EXPECT_EQ(toml(kNumbers, "[0.9, 0.999]"), "[0.9, 0.999]");
  EXPECT_EQ(toml(kTexts, "[]"), "[]");
  EXPECT_EQ(toml(kTimes, "[1ep, 0.5dur]"), "[\"1ep\", \"0.5dur\"]");
  EXPECT_TRUE(fallback_value({"b", kInteger, "none", ""}, "", {}).is_none());
}

std::string meant(const Key& key, Setting::Value value) {
  const std::string error = error_of(key, std::move(value)), before = "did you mean ";
  const std::size_t at = error.find(before);
  return at == error.npos ? "" : error.substr(at + before.size(), error.size() - at - before.size() - 1);
}

TEST(KeyCheck, ATimeInOtherWordsIsUnderstood) {
  const Key key = Key{"b", kTime, "", ""}.in_units({"ep", "ba", "sp", "tok", "sec"});
  const std::vector<std::pair<std::string, std::string>> times = {{"5 epochs", "5ep"},
                                                                  {"1 Epoch", "1ep"},
                                                                  {"100steps", "100ba"},
                                                                  {"100 iterations", "100ba"},
                                                                  {"1e6 tokens", "1000000tok"},
                                                                  {"90min", "1h30m"},
                                                                  {"2 hours", "2h"},
                                                                  {"30s", ""},
                                                                  {"20", "20ep"},
                                                                  {"48h", "172800sec"},
                                                                  {"5 apples", ""}};
  for (const auto& [written, ours] : times)
    EXPECT_EQ(meant(key, written), ours.empty() ? "" : '"' + ours + '"') << written;
  EXPECT_EQ(meant(Key{"b", kTime, "", ""}.in_units({"sec"}), std::string("20")), "\"20sec\"");
  EXPECT_EQ(meant(Key{"b", kTime, "", ""}.in_units({"sec"}), std::string("3 epochs")), "");
}

TEST(KeyCheck, AValueOfAnotherTypeIsUnderstood) {
  EXPECT_EQ(meant({"b", kNumber, "", ""}, std::string("1e-3")), "0.001");
  EXPECT_EQ(meant(Key{"b", kNumber, "", ""}.at_least(0), std::string("-1")), "");
  EXPECT_EQ(meant({"b", kInteger, "", ""}, std::string("64")), "64");
  EXPECT_EQ(meant({"b", kInteger, "", ""}, 1e6), "1000000");
  EXPECT_EQ(meant({"b", kInteger, "", ""}, 1.5), "");
  EXPECT_EQ(meant({"b", kBoolean, "", ""}, std::string("False")), "false");
  EXPECT_EQ(meant({"b", kText, "", ""}, int64_t{7}), "\"7\"");
  EXPECT_EQ(meant({"b", kIntegers, "", ""}, list({std::string("3")})), "3");
  EXPECT_EQ(meant({"b", kPath, "", ""}, 2.0), "");
}

TEST(KeyCheck, AChoiceInOtherWordsIsUnderstood) {
  const Key key = Key{"b", kText, "", ""}.one_of({"fp32", "amp_fp16", "amp_bf16"});
  for (const auto& [written, ours] :
       std::vector<std::pair<std::string, std::string>>{{"bf16", "amp_bf16"},
                                                        {"BFloat16", "amp_bf16"},
                                                        {"float32", "fp32"},
                                                        {"half", "amp_fp16"},
                                                        {"fp16", "amp_fp16"},
                                                        {"FP32", "fp32"}})
    EXPECT_EQ(meant(key, written), '"' + ours + '"') << written;
}

TEST(KeyCheck, AKeyNotCarriedOverIsRefusedWithItsReason) {
  const Key key = Key{"b", kBoolean, "none", ""}.not_carried_over("nobody asks");
  EXPECT_EQ(error_of(key, true), "r.toml:3: a.b = true: not carried over: nobody asks");
  EXPECT_TRUE(fallback_value(key, "", {}).is_none());
}

TEST(TimeUnit, KnowsEveryUnit) {
  for (const char* unit : {"iter", "ep", "ba", "sp", "tok", "dur", "sec"}) {
    EXPECT_EQ(time_unit("12" + std::string(unit)), unit);
  }
  for (const char* clock : {"1h20m40s", "59s", "5m", "2h", "1h40s"}) EXPECT_EQ(time_unit(clock), "sec");
}

TEST(TimeUnit, OnlyDurationsHaveFractions) {
  EXPECT_EQ(time_unit("0.5dur"), "dur");
  EXPECT_EQ(time_unit("1.5sec"), "");
  EXPECT_EQ(time_unit("1.5ep"), "");
  EXPECT_EQ(time_unit("1e6tok"), "tok");
  EXPECT_EQ(time_unit("1_000sp"), "sp");
}

TEST(TimeUnit, RefusesWhatIsNoTime) {
  for (const char* text : {"", "ep", "10", "-1ep", "10epp", "1..2dur", "1__0ep", "infdur", "nandur", "40s1h",
                           "1h1h", "60s", "60m", "24h"}) {
    EXPECT_EQ(time_unit(text), "") << text;
  }
}

}  // namespace
}  // namespace tutti
