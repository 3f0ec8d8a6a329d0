#include "runtime/setting.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace tutti {
namespace {

Setting written(Setting::Value value) { return Setting(std::move(value), "a.b", {"r.toml", 3}); }

std::string error_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Setting, ReadsItsOwnType) {
  EXPECT_TRUE(written(true).boolean());
  EXPECT_EQ(written(int64_t{3}).integer(), 3);
  EXPECT_EQ(written(2.5).number(), 2.5);
  EXPECT_EQ(written(int64_t{3}).number(), 3.0);
  EXPECT_EQ(written(std::string("x")).text(), "x");
  EXPECT_EQ(written(Setting::Array{written(int64_t{1}), written(int64_t{2})}).integers(),
            (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(written(Setting::Array{written(int64_t{1}), written(0.5)}).numbers(),
            (std::vector<double>{1, 0.5}));
}

TEST(Setting, AnotherTypeIsNamedWithPathAndValue) {
  EXPECT_EQ(error_of([] { written(2.5).integer(); }), "r.toml:3: a.b = 2.5: expected an integer");
  EXPECT_EQ(error_of([] { written(std::string("x")).number(); }), "r.toml:3: a.b = \"x\": expected a number");
  EXPECT_EQ(error_of([] { written(int64_t{1}).boolean(); }), "r.toml:3: a.b = 1: expected true or false");
  EXPECT_EQ(error_of([] { written(int64_t{1}).texts(); }), "r.toml:3: a.b = 1: expected a list of texts");
  EXPECT_EQ(error_of([] { written(true).text(); }), "r.toml:3: a.b = true: expected a text");
  EXPECT_EQ(error_of([] { written(std::monostate{}).text(); }), "r.toml:3: a.b: expected a text");
  EXPECT_EQ(error_of([] { written(Setting::Table{}).text(); }), "r.toml:3: [a.b]: expected a text");
}

TEST(Setting, FindsMembersByName) {
  const Setting table = written(Setting::Table{{"x", written(int64_t{1})}, {"y", Setting()}});
  EXPECT_EQ(table.at("x").integer(), 1);
  EXPECT_TRUE(table.has("x"));
  EXPECT_FALSE(table.has("y"));
  EXPECT_FALSE(table.has("z"));
  EXPECT_EQ(table.find("z"), nullptr);
}

TEST(Setting, NumbersAsTomlKeepAllTheirBits) {
  for (const double number : {0.1, 1.0, 1e-8, 1.0 / 3, 1e300, -0.0, 123456789.0}) {
    const std::string text = written(number).toml();
    EXPECT_EQ(std::signbit(std::stod(text)), std::signbit(number));
    EXPECT_EQ(std::stod(text), number);
    EXPECT_NE(text.find_first_of(".e"), std::string::npos) << text;
  }
  EXPECT_EQ(written(INFINITY).toml(), "inf");
  EXPECT_EQ(written(-INFINITY).toml(), "-inf");
}

TEST(Setting, TextsAsTomlAreEscaped) {
  EXPECT_EQ(written(std::string("a\"b\\c\nd\te\x01")).toml(), "\"a\\\"b\\\\c\\nd\\te\\u0001\"");
}

TEST(Setting, TablesAsTomlLeaveOutWhatIsNone) {
  const Setting table =
      written(Setting::Table{{"x", written(int64_t{1})}, {"y", Setting()}, {"a b", written(true)}});
  EXPECT_EQ(table.toml(), "{x = 1, \"a b\" = true}");
}

}  // namespace
}  // namespace tutti
