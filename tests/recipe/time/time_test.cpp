#include "recipe/time/time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// Texts that Composer accepts and tutti does not: numbers without a unit (Composer reads "5" as 50 seconds),
// nothing at all, endless and meaningless lengths, and digits outside of ASCII.
TEST(Time, RefusesWhatOnlyComposerTakes) {
  for (const char* text : {"5", "", "nandur", "infdur", "1e400dur", "\uff11ba", "7m3"}) {
    EXPECT_THROW(Time::parse(text), UserError) << text;
    EXPECT_NO_THROW(Time::parse_composer(text)) << text;
  }
}

TEST(Time, ReadsAsComposerDoesWhereAsked) {
  EXPECT_EQ(Time::parse_composer("1h5").text(), "3650sec");
  EXPECT_EQ(Time::parse_composer("5ba\n").text(), "5ba");
  EXPECT_EQ(Time::parse_composer("1e400dur").text(), "infdur");
  EXPECT_EQ(Time::parse_composer("\u0663\u0660ba").text(), "30ba");
  EXPECT_EQ(Time::parse_composer("1\uff11s").text(), "11sec");
  for (const char* blank :
       {"\u00a0", "\u1680", "\u2000", "\u200a", "\u2028", "\u202f", "\u205f", "\u3000", "\x1c"}) {
    const std::string text = std::string(blank) + "5" + blank + "ba";
    EXPECT_EQ(Time::parse_composer(text).text(), "5ba") << text;
    EXPECT_THROW(Time::parse(text), UserError) << text;
    EXPECT_THROW(Time::parse_composer("5" + (blank + std::string("5ba"))), UserError) << text;
  }
  for (const char* text : {"55", "\uff15", "nan(1)dur", "1__0ba", "+-1ba", "\n5ba", "1e400ba"})
    EXPECT_THROW(Time::parse_composer(text), UserError) << text;
}

TEST(Time, PartsOfATrainingAreWrittenAsPythonDoes) {
  EXPECT_EQ(Time(1e-5, TimeUnit::kDuration).text(), "1e-05dur");
  EXPECT_EQ(Time(1e-4, TimeUnit::kDuration).text(), "0.0001dur");
  EXPECT_EQ(Time(1e16, TimeUnit::kDuration).text(), "1e+16dur");
  EXPECT_EQ(Time(123456789012345680.0, TimeUnit::kSample).text(), "123456789012345680sp");
}

Time ba(double value) { return {value, TimeUnit::kBatch}; }
Time dur(double value) { return {value, TimeUnit::kDuration}; }
Time ep(double value) { return {value, TimeUnit::kEpoch}; }

TEST(Time, WholeNumbersHaveNoMinusZero) {
  EXPECT_EQ((ba(-20) * 0.01).text(), "0ba");
  EXPECT_EQ((-ba(0)).text(), "0ba");
}

TEST(Time, RestOfADivisionIsPythons) {
  EXPECT_EQ((dur(-0.5) % dur(0.3)).value(), std::fmod(-0.5, 0.3) + 0.3);
  EXPECT_EQ((dur(0.7) % dur(0.1)).value(), std::fmod(0.7, 0.1));
  EXPECT_EQ((ba(20) % ba(-7)).value(), -1);
}

TEST(Time, UnlikeUnitsDoNotCompare) {
  EXPECT_LT(ba(20), ba(41));
  EXPECT_THAT([] { (void)(ba(20) == Time(20, TimeUnit::kSample)); },
              ThrowsMessage<UserError>(HasSubstr("20ba and 20sp")));
}

TEST(Time, IntegerInARecipeMeansEpochs) {
  EXPECT_EQ(Time::parse(Setting(int64_t{3}, "train.max_duration", {"a.toml", 4})), ep(3));
}

TEST(Time, ErrorInARecipeNamesThePlace) {
  const Setting setting(std::string("3 weeks"), "train.max_duration", {"a.toml", 4});
  EXPECT_THAT([&] { Time::parse(setting); }, ThrowsMessage<UserError>(HasSubstr("a.toml:4")));
}

}  // namespace
}  // namespace tutti
