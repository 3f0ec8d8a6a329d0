#include "recipe/setting.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <new>

#include "recipe/toml_reader.h"

namespace tutti {
namespace {

Setting at_a_place(Setting::Value value) { return Setting(std::move(value), "a.b", {"r.toml", 3}); }

std::string error_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Setting, ReadsItsOwnType) {
  EXPECT_TRUE(at_a_place(true).boolean());
  EXPECT_EQ(at_a_place(int64_t{3}).integer(), 3);
  EXPECT_EQ(at_a_place(2.5).number(), 2.5);
  EXPECT_EQ(at_a_place(int64_t{3}).number(), 3.0);
  EXPECT_EQ(at_a_place(std::string("x")).text(), "x");
  EXPECT_EQ(at_a_place(Setting::Array{at_a_place(int64_t{1}), at_a_place(int64_t{2})}).integers(),
            (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(at_a_place(Setting::Array{at_a_place(int64_t{1}), at_a_place(0.5)}).numbers(),
            (std::vector<double>{1, 0.5}));
}

TEST(Setting, AnotherTypeIsNamedWithPathAndValue) {
  EXPECT_EQ(error_of([] { at_a_place(2.5).integer(); }), "r.toml:3: a.b = 2.5: expected an integer");
  EXPECT_EQ(error_of([] { at_a_place(std::string("x")).number(); }),
            "r.toml:3: a.b = \"x\": expected a number");
  EXPECT_EQ(error_of([] { at_a_place(int64_t{1}).boolean(); }), "r.toml:3: a.b = 1: expected true or false");
  EXPECT_EQ(error_of([] { at_a_place(int64_t{1}).texts(); }), "r.toml:3: a.b = 1: expected a list of texts");
  EXPECT_EQ(error_of([] { at_a_place(true).text(); }), "r.toml:3: a.b = true: expected a text");
  EXPECT_EQ(error_of([] { at_a_place(std::monostate{}).text(); }), "r.toml:3: a.b: expected a text");
  EXPECT_EQ(error_of([] { at_a_place(Setting::Table{}).text(); }), "r.toml:3: [a.b]: expected a text");
}

TEST(Setting, AMessageHasNoControlCharactersAndCutsWhatIsLong) {
  const std::string long_text(70'000, 'x');
  EXPECT_EQ(error_of([] { at_a_place(std::string("\x1b[31m\n\xc2\x9b")).number(); }),
            "r.toml:3: a.b = \"\\u001B[31m\\n\\u009B\": expected a number");
  EXPECT_EQ(error_of([&] { at_a_place(long_text).number(); }),
            "r.toml:3: a.b = \"" + long_text.substr(0, 59) + "...: expected a number");
  const Setting key(true, "a.\x1b" + long_text, {"r.toml", 3});
  EXPECT_EQ(error_of([&] { key.number(); }),
            "r.toml:3: a.\\x1b" + long_text.substr(0, 57) + "... = true: expected a number");
}

TEST(Setting, ANameThatIsAbsentIsNamedWithThoseThatExist) {
  const Setting table = at_a_place(Setting::Table{{"x", at_a_place(int64_t{1})}, {"a b", Setting()}});
  EXPECT_EQ(error_of([&] { table.at("width"); }),
            "r.toml:3: [a.b]: it lacks the key width; it has x, \"a b\"");
  EXPECT_EQ(error_of([] { at_a_place(Setting::Table{}).at("x"); }), "r.toml:3: [a.b]: it lacks the key x");
}

TEST(Setting, FindsMembersByName) {
  const Setting table = at_a_place(Setting::Table{{"x", at_a_place(int64_t{1})}, {"y", Setting()}});
  EXPECT_EQ(table.at("x").integer(), 1);
  EXPECT_TRUE(table.has("x"));
  EXPECT_FALSE(table.has("y"));
  EXPECT_FALSE(table.has("z"));
  EXPECT_EQ(table.find("z"), nullptr);
}

TEST(Setting, NumbersAsTomlKeepAllTheirBits) {
  for (const double number : {0.1, 1.0, 1e-8, 1.0 / 3, 1e300, -0.0, 123456789.0}) {
    const std::string text = at_a_place(number).toml();
    EXPECT_EQ(std::signbit(std::stod(text)), std::signbit(number));
    EXPECT_EQ(std::stod(text), number);
    EXPECT_NE(text.find_first_of(".e"), std::string::npos) << text;
  }
  EXPECT_EQ(at_a_place(INFINITY).toml(), "inf");
  EXPECT_EQ(at_a_place(-INFINITY).toml(), "-inf");
}

TEST(Setting, TextsAsTomlAreEscaped) {
  EXPECT_EQ(at_a_place(std::string("a\"b\\c\nd\te\x01")).toml(), "\"a\\\"b\\\\c\\nd\\te\\u0001\"");
  EXPECT_EQ(at_a_place(std::string("\xc2\x9b\xc2\xa0\x7f")).toml(), "\"\\u009B\xc2\xa0\\u007F\"");
  const std::string turned = "a\u202e\u061c\u2069\u05d0";
  EXPECT_EQ(at_a_place(turned).toml(), "\"a\\u202E\\u061C\\u2069\u05d0\"");
  EXPECT_EQ(parse_recipe("a = " + at_a_place(turned).toml(), "r.toml").at("a").text(), turned);
}

TEST(Setting, ALackOfMemoryIsNoMistakeOfTheUser) {
  const Setting recipe = parse_recipe("a = 1", "r.toml");
  const auto end = [&](const std::exception& cause) {
    try {
      recipe.at("a").fail(cause);
    } catch (const RunError& error) {
      EXPECT_TRUE(error.headline().starts_with("r.toml:1: a = 1: ")) << error.headline();
      EXPECT_EQ(dynamic_cast<const UserError*>(&error) == nullptr, exit_code(error.kind()) == 1);
      return exit_code(error.kind());
    }
    return 0;
  };
  EXPECT_EQ(end(std::bad_alloc()), 1);
  EXPECT_EQ(end(RunError(EndKind::kOutOfMemoryElsewhere, "no room")), 1);
  EXPECT_EQ(end(UserError("no number")), 2);
  EXPECT_EQ(end(OperatingError("no disk")), 2);
}

TEST(Setting, TablesAsTomlLeaveOutWhatIsNone) {
  const Setting table =
      at_a_place(Setting::Table{{"x", at_a_place(int64_t{1})}, {"y", Setting()}, {"a b", at_a_place(true)}});
  EXPECT_EQ(table.toml(), "{x = 1, \"a b\" = true}");
}

}  // namespace
}  // namespace tutti
