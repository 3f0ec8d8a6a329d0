#include "runtime/error.h"

#include <gtest/gtest.h>

#include <any>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>

#include "runtime/lack_of_memory.h"

namespace tutti {
namespace {

TEST(ErrorTest, PositionWithoutALineIsTheFile) {
  EXPECT_EQ((Position{"digits.toml", 12}).text(), "digits.toml:12");
  EXPECT_EQ((Position{"digits.toml", 0}).text(), "digits.toml");
}

TEST(ErrorTest, UserErrorBeginsWithItsPosition) {
  EXPECT_STREQ(UserError({"digits.toml", 3}, "lr = -1").what(), "digits.toml:3: lr = -1");
  EXPECT_STREQ(UserError(Position{}, "lr = -1").what(), "lr = -1");
}

Position in_source(const std::string& text, int line, Columns columns) {
  return {"r.toml", line, columns, {}, std::make_shared<const std::string>(text)};
}

TEST(ErrorTest, TheLineIsShownWithACaretBelow) {
  const UserError error(in_source("[optimizer]\nlr = \"fast\"  # why\n", 2, {6, 6}), "expected a number");
  EXPECT_STREQ(error.what(),
               "r.toml:2: expected a number\n"
               "    2 | lr = \"fast\"  # why\n"
               "      |      ^^^^^^");
  EXPECT_EQ(error.headline(), "r.toml:2: expected a number");
  EXPECT_EQ(error.message(), "expected a number");
}

TEST(ErrorTest, TheKeyMayBeMarkedInstead) {
  Position position = in_source("lr = 1", 1, {6, 1});
  EXPECT_EQ(position.key_position().excerpt(), position.excerpt());
  position.key_columns = {1, 2};
  EXPECT_EQ(position.key_position().excerpt(), "\n    1 | lr = 1\n      | ^^");
}

TEST(ErrorTest, AnOptionHasNoNumberOfALine) {
  EXPECT_EQ(in_source("--set a=b", 0, {9, 1}).excerpt(), "\n      | --set a=b\n      |         ^");
}

TEST(ErrorTest, TabsAndWideCharactersTakeAColumn) {
  EXPECT_EQ(in_source("\tname = \"\xc3\xb6\"\r\n", 1, {9, 3}).excerpt(),
            "\n    1 |  name = \"\xc3\xb6\"\n      |         ^^^");
}

TEST(ErrorTest, ACaretStandsBehindTheLineToo) {
  EXPECT_EQ(in_source("a =", 1, {4, 1}).excerpt(), "\n    1 | a =\n      |    ^");
  EXPECT_EQ(in_source("a = [\n1]", 1, {5, 1000}).excerpt(), "\n    1 | a = [\n      |     ^");
  EXPECT_EQ(in_source("a", 7, {1, 1}).excerpt(), "\n    7 | \n      | ^");
}

TEST(ErrorTest, OfALongLineAPartIsShown) {
  const std::string text = "key = \"" + std::string(200, 'x') + "\"; bad";
  const std::string shown = in_source(text, 1, {211, 3}).excerpt();
  EXPECT_EQ(shown,
            "\n    1 | ..." + std::string(27, 'x') + "\"; bad\n      |    " + std::string(30, ' ') + "^^^");
}

template <class Function>
std::string message_of(Function function) try {
  function();
  return "no error";
} catch (const std::exception& error) {
  EXPECT_EQ(end_by(error).reason, error_message(error));
  return error_message(error);
}

TEST(ErrorTest, ErrorsOfTheStandardLibrarySayWhatTheyMean) {
  EXPECT_EQ(message_of([] { std::map<int, int>().at(3); }),
            "a name or index is looked up that does not exist (map::at)");
  EXPECT_EQ(message_of([] { (void)std::any_cast<bool>(std::any(3)); }),
            "a value is read as a type that it does not have (bad any_cast)");
  EXPECT_EQ(message_of([] { (void)std::get<bool>(std::variant<int, bool>(3)); }),
            "a value is read as a type that it does not have (std::get: wrong index for variant)");
  EXPECT_EQ(message_of([] { (void)std::optional<int>().value(); }),
            "a value is read that is absent (bad optional access)");
  EXPECT_EQ(message_of([] { std::function<void()>()(); }),
            "a function is called that is not set (bad_function_call)");
  EXPECT_EQ(message_of([] { throw std::runtime_error("own words"); }), "own words");
}

TEST(ErrorTest, FailedAssertionSaysWhatAndWhere) {
  EXPECT_DEATH(TUTTI_ASSERT(1 + 1 == 3, "arithmetic holds"),
               "error_test.cpp:.*1 \\+ 1 == 3 \\(arithmetic holds\\)");
}

TEST(ErrorTest, AssertionsReasonIsEvaluatedOnlyWhenItFails) {
  int evaluated = 0;
  TUTTI_ASSERT(true, std::to_string(++evaluated));
  EXPECT_EQ(evaluated, 0);
}

TEST(RankMessage, NamesTheRankOnce) {
  EXPECT_EQ(rank_message(1, "the disk is full"), "rank 1: the disk is full");
  EXPECT_EQ(rank_message(1, "rank 1 compute: shapes differ"), "rank 1 compute: shapes differ");
  EXPECT_EQ(rank_message(1, "rank 1: step 1, its update: out of memory"),
            "rank 1: step 1, its update: out of memory");
  EXPECT_EQ(rank_message(1, "rank 10 hangs"), "rank 1: rank 10 hangs");
}

}  // namespace
}  // namespace tutti
