#include "runtime/printable.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Printable, EscapesControlCharactersButLineBreaks) {
  EXPECT_EQ(printable("a\tb\x1b[31m\r\n\x7f\xc2\x9b"), "a\\x09b\\x1b[31m\\x0d\n\\x7f\\x9b");
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(printable("Gr\xc3\xb6\xc3\x9f"
                      "e \xff"),
            "Gr\xc3\xb6\xc3\x9f"
            "e \xef\xbf\xbd");
}

TEST(Printable, EscapesEndsOfLinesAndParagraphs) {
  EXPECT_EQ(printable("a\u2028b\u2029c"), "a\\u2028b\\u2029c");
}

// U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069, and their neighbours.
TEST(Printable, EscapesMarksThatTurnTheDirectionOfText) {
  EXPECT_EQ(printable("a\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069z"),
            "a\\u061c\\u200e\\u200f\\u202a\\u202b\\u202c\\u202d\\u202e\\u2066\\u2067\\u2068\\u2069z");
  const std::string shown = "\u061b\u061d\u065c\u200d\u2010\u2027\u202f\u2065\u206a\u214e\U0001f600\u05d0";
  EXPECT_EQ(printable(shown), shown);
  EXPECT_EQ(printable(std::string_view("\u202e").substr(0, 2)), "\xef\xbf\xbd");
  EXPECT_FALSE(is_printable("a\u202eb"));
  for (const std::string_view torn : {"\xc2", "\xd8", "\xe2\x80", "\xc2\x41", "\xd8\x1c", "\xe2\x80\x2e"})
    EXPECT_EQ(control_at(torn, 0).bytes, 0u);
}

TEST(Printable, LeavesOutTheMiddleOfALongMessage) {
  const std::string message = "digits.toml:3: " + std::string(70'000, 'x') + ": expected a number";
  const std::string text = printable(message);
  EXPECT_LT(text.size(), 4'100u);
  EXPECT_EQ(text.find("digits.toml:3: xxx"), 0u);
  EXPECT_TRUE(text.ends_with("xxx: expected a number"));
  EXPECT_NE(text.find("x ... (66034 bytes) ... x"), std::string::npos);
  const std::string fits(4'000, 'x');
  EXPECT_EQ(printable(fits), fits);
}

TEST(Printable, CutsNoCharacterInTwo) {
  for (std::size_t shift = 0; shift < 4; ++shift) {
    std::string text(shift, 'x');
    while (text.size() < 9'000) text += "\xe2\x82\xac";
    EXPECT_EQ(printable(text).find("\xef\xbf\xbd"), std::string::npos);
    EXPECT_EQ(shown(text).find("\xef\xbf\xbd"), std::string::npos);
  }
}

TEST(Printable, TextForATerminalKeepsItsTabsAndAllOfItself) {
  const std::string rest(10'000, 'x');
  EXPECT_EQ(terminal_text("a\tb\x1b]0;title\x07\r\n\xe2\x82" + rest),
            "a\tb\\x1b]0;title\\x07\\x0d\n\xef\xbf\xbd" + rest);
  EXPECT_EQ(on_one_line("a\n\xc2\x9b" + rest), "a\\n\\x9b" + rest);
}

TEST(Printable, PrintedTextIsSafe) {
  testing::internal::CaptureStdout();
  print_text("run \x1b[31m\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "run \\x1b[31m\n");
}

TEST(Printable, OfAValueLineBreaksAreEscapedToo) {
  EXPECT_EQ(shown("a\nb"), "a\\nb");
  EXPECT_EQ(shown(std::string(60, 'x')), std::string(60, 'x'));
  EXPECT_EQ(shown(std::string(61, 'x')), std::string(60, 'x') + "...");
}

TEST(Printable, OnOneLineTheWholeValueIsKept) {
  EXPECT_EQ(on_one_line("a\r\nb\x1b\xc2\x85\xff" + std::string(5'000, 'x')),
            "a\\x0d\\nb\\x1b\\x85\xef\xbf\xbd" + std::string(5'000, 'x'));
}

TEST(Printable, AValueIsPrintableIfNothingOfItIsEscaped) {
  EXPECT_TRUE(
      is_printable("train/Gr\xc3\xb6\xc3\x9f"
                   "e \\n"));
  for (const char* text : {"a\nb", "\x1b[2J", "\x7f", "\xc2\x9b", "\xff"})
    EXPECT_FALSE(is_printable(text)) << text;
}

constexpr const char* kTwo = "r.toml:3: x = 1: wrong\n    3 | x = 1\n      |     ^\n\nerror: y\n\n2 errors";

TEST(ErrorText, IsPlainWithoutColours) {
  EXPECT_EQ(error_text("wrong", false), "error: wrong\n");
  EXPECT_EQ(error_text(kTwo, false), std::string("error: ") + kTwo + "\n");
}

TEST(ErrorText, ColoursMarkTheWordTheLineAndTheCaret) {
  const std::string red = "\033[1;31m", cyan = "\033[36m", plain = "\033[0m";
  EXPECT_EQ(error_text(kTwo, true), red + "error:" + plain + " r.toml:3: x = 1: wrong\n" + cyan + "    3 |" +
                                        plain + " x = 1\n" + cyan + "      |" + plain + red + "     ^" +
                                        plain + "\n\n" + red + "error:" + plain + " y\n\n2 errors\n");
}

TEST(ErrorText, SeveralErrorsAreCutOneByOne) {
  const std::string text =
      error_text(std::string(5'000, 'x') + "\n\nerror: " + std::string(5'000, 'y'), false);
  EXPECT_NE(text.find("xxx ... (1000 bytes) ... xxx"), std::string::npos);
  EXPECT_NE(text.find("yyy ... (1007 bytes) ... yyy"), std::string::npos);
}

}  // namespace
}  // namespace tutti
