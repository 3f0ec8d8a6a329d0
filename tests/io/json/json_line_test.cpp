#include "io/json/json_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "io/json/json_text.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(JsonLineTest, IsReadBackAsItWasWritten) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string line = json_line({{"step", int64_t{7}},
                                      {"third", 1.0 / 3},
                                      {"list", std::vector{0.1, -infinity, 1e300}},
                                      {"up", infinity}});
  EXPECT_THAT(json_keys(line), ElementsAre("list", "step", "third", "up"));
  EXPECT_EQ(json_number(line, "step"), 7);
  EXPECT_EQ(json_number(line, "third"), 1.0 / 3);
  EXPECT_EQ(json_number(line, "up"), infinity);
  EXPECT_THAT(json_numbers(line, "list"), ElementsAre(0.1, -infinity, 1e300));
  EXPECT_TRUE(std::isnan(json_number(json_line({{"x", std::nan("")}}), "x")));
  EXPECT_TRUE(json_numbers(json_line({{"none", std::vector<double>()}}), "none").empty());
}

TEST(JsonLineTest, AMissingKeyIsAUserErrorThatNamesIt) {
  EXPECT_THAT([] { json_number("{\"a\": 1}", "b"); }, ThrowsMessage<UserError>(HasSubstr("'b'")));
  EXPECT_THAT([] { json_number("{\"a\": \"one\"}", "a"); }, ThrowsMessage<UserError>(HasSubstr("'a'")));
  EXPECT_THAT([] { json_numbers("{\"a\": 1}", "a"); }, ThrowsMessage<UserError>(HasSubstr("'a'")));
  EXPECT_THAT([] { json_keys("[1"); }, ThrowsMessage<UserError>(HasSubstr("[1")));
}

TEST(JsonLineTest, HasNoControlCharactersThatATerminalObeys) {
  EXPECT_EQ(json_line({{"a\x1b\x7f", std::string("\xc2\x80\xc2\x9f\xc2\xa0 \xff\u202e")}}),
            "{\"a\\u001b\\u007f\": \"\\u0080\\u009f\xc2\xa0 \xef\xbf\xbd\\u202e\"}");
}

TEST(JsonText, WrongTypesAndMissingMembersAreSaidInPlainWords) {
  const auto problem = [](auto read) {
    try {
      read();
    } catch (const nlohmann::json::exception& error) {
      return json_problem(error);
    }
    return std::string();
  };
  const nlohmann::json object = {{"a", 5}};
  EXPECT_EQ(problem([&] { object.at("b"); }), "key 'b' not found");
  EXPECT_EQ(problem([&] { object.at("a").get<std::string>(); }), "type must be string, but is number");
  EXPECT_EQ(problem([&] { object.at("a").at("b"); }), "a part of it is of another type than expected");
  EXPECT_EQ(problem([] { parse_json("{\"a\": }"); }), "no JSON from byte 7 on");
  EXPECT_EQ(text_member(object, "a", "none") + text_member(object, "b"), "none");
  EXPECT_EQ(integer_member(object, "a"), 5);
  EXPECT_EQ(integer_member(nlohmann::json{{"a", 1e300}}, "a", -1), -1);
  EXPECT_EQ(integer_member(nlohmann::json{{"a", "x"}}, "a", -1), -1);
}

TEST(JsonText, NestingIsBounded) {
  const auto nested = [](int levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_EQ(parse_json(nested(kMaxJsonDepth)).dump(), nested(kMaxJsonDepth));
  EXPECT_THROW(parse_json(nested(kMaxJsonDepth + 1)), nlohmann::json::parse_error);
  EXPECT_THROW(parse_json("[1e999]"), nlohmann::json::parse_error);
  EXPECT_TRUE(parse_json(nested(1'000'000), nullptr, /*allow_exceptions=*/false).is_discarded());
  const std::string quoted = "\"" + std::string(100, '[') + "\\\"" + std::string(100, '{') + "\"";
  EXPECT_EQ(parse_json(quoted).dump(), quoted);
  EXPECT_EQ(json_integer("{\"a\": " + nested(1'000'000) + ", \"step\": 3}", "step", -1), -1);
}

}  // namespace
}  // namespace tutti
