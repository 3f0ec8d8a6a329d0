#include "training/time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/golden/golden_file.h"
#include "training/timestamp.h"

namespace tutti {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::ThrowsMessage;

json golden() { return json::parse(std::ifstream(golden_path("time.json"))); }

// What Composer takes and tutti does not: numbers without a unit (Composer reads "5" as 50 seconds), nothing
// at all, endless and meaningless lengths, and digits outside of ASCII.
const std::set<std::string> kRefused = {"5", "", "nandur", "infdur", "\uff11ba"};

TEST(Time, ParsesAsComposerDoes) {
  const json all = golden();
  ASSERT_EQ(all["parse"].size(), 78U);
  for (const json& entry : all["parse"]) {
    const std::string text = entry["string"];
    if (entry.contains("error") || kRefused.contains(text)) {
      EXPECT_THROW(Time::parse(text), UserError) << "'" << text << "'";
      continue;
    }
    const Time time = Time::parse(text);
    EXPECT_EQ(time.value(), entry["value"].get<double>()) << text;
    EXPECT_EQ(suffix(time.unit()), entry["unit"]) << text;
    EXPECT_EQ(time.text(), entry["str"]) << text;
  }
}

Time ba(double value) { return {value, TimeUnit::kBatch}; }
Time dur(double value) { return {value, TimeUnit::kDuration}; }
Time ep(double value) { return {value, TimeUnit::kEpoch}; }

// The golden expressions are Python's; these are the same in C++.
const std::map<std::string, std::function<Time()>> kArithmetic = {
    {R"(Time(20,"ba")+Time(41,"ba"))", [] { return ba(20) + ba(41); }},
    {R"(Time(20,"ba")-Time(41,"ba"))", [] { return ba(20) - ba(41); }},
    {R"(Time(20,"ba")+Time(41,"ep"))", [] { return ba(20) + ep(41); }},
    {R"(Time(20,"ba")*0.775)", [] { return ba(20) * 0.775; }},
    {R"(Time(20,"ba")*41)", [] { return ba(20) * 41; }},
    {R"(Time(20,"ba")/41)", [] { return ba(20) / 41; }},
    {R"(Time(20,"ba")/0.775)", [] { return ba(20) / 0.775; }},
    {R"(Time(20,"ba")/Time(41,"ba"))", [] { return ba(20) / ba(41); }},
    {R"(Time(20,"ep")/Time(41,"ba"))", [] { return ep(20) / ba(41); }},
    {R"(Time(20,"ba")*Time(0.775,"dur"))", [] { return ba(20) * dur(0.775); }},
    {R"(Time(0.775,"dur")*Time(20,"ba"))", [] { return dur(0.775) * ba(20); }},
    {R"(Time(0.775,"dur")*Time(0.383,"dur"))", [] { return dur(0.775) * dur(0.383); }},
    {R"(Time(20,"ba")*Time(41,"ba"))", [] { return ba(20) * ba(41); }},
    {R"(Time(20,"ba")%Time(41,"ba"))", [] { return ba(20) % ba(41); }},
    {R"(Time(-20,"ba")%Time(41,"ba"))", [] { return ba(-20) % ba(41); }},
    {R"(Time(-20,"ba")/2)", [] { return ba(-20) / 2; }},
    {R"(Time(-20,"ba")*0.775)", [] { return ba(-20) * 0.775; }},
    {R"(-Time(20,"sp"))", [] { return -Time(20, TimeUnit::kSample); }},
    {R"(Time(0.775,"dur")+Time(0.383,"dur"))", [] { return dur(0.775) + dur(0.383); }},
    {R"(Time(0.775,"dur")/2)", [] { return dur(0.775) / 2; }},
    {R"(Time(0.775,"dur")/Time(0.383,"dur"))", [] { return dur(0.775) / dur(0.383); }},
    {R"(Time(0.775,"ep"))", [] { return ep(0.775); }},
    {R"(Time(20,"ba")/Time(0,"ba"))", [] { return ba(20) / ba(0); }},
    {R"(Time(0,"ba")*0.775)", [] { return ba(0) * 0.775; }},
    {R"(Time(10,"ba")*0.29)", [] { return ba(10) * 0.29; }},
    {R"(Time(10,"ba")*Time(0.29,"dur"))", [] { return ba(10) * dur(0.29); }},
    {R"(Time(100,"ba")*0.29)", [] { return ba(100) * 0.29; }},
    {R"(Time(3,"ep")*0.9999999)", [] { return ep(3) * 0.9999999; }},
};

TEST(Time, CountsAsComposerDoes) {
  const json all = golden();
  size_t checked = 0;
  for (const json& entry : all["arithmetic"]) {
    const auto found = kArithmetic.find(entry["expr"]);
    if (found == kArithmetic.end()) continue;
    ++checked;
    if (entry.contains("error")) {
      EXPECT_THROW(found->second(), UserError) << found->first;
      continue;
    }
    EXPECT_EQ(found->second().value(), entry["value"].get<double>()) << found->first;
    EXPECT_EQ(found->second().text(), entry["str"]) << found->first;
  }
  EXPECT_EQ(checked, kArithmetic.size());
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
