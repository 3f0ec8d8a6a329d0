#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/text.h"

namespace tutti {
namespace {

TEST(Utf8Test, EveryLengthOfCharacterIsUtf8) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("plain"));
  EXPECT_TRUE(is_utf8("\xc2\x80 \xdf\xbf \xe0\xa0\x80 \xef\xbf\xbf \xf0\x90\x80\x80 \xf4\x8f\xbf\xbf"));
}

TEST(Utf8Test, StrayAndMissingBytesAreNot) {
  for (const char* text : {"a\xff", "\x80", "\xc3", "\xc3(", "\xe2\x82", "\xf0\x9f\x98",
                           "Gr\xfc\xdf"
                           "e"})
    EXPECT_FALSE(is_utf8(text)) << text;
}

TEST(Utf8Test, SurrogatesLongFormsAndWhatIsBeyondUnicodeAreNot) {
  for (const char* text : {"\xed\xa0\x80", "\xed\xbf\xbf", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf",
                           "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"})
    EXPECT_FALSE(is_utf8(text)) << text;
}

// The counts are those of Python: len(b"...".decode(errors="replace")).
TEST(Utf8Test, BadBytesAreReplacedAsInPython) {
  EXPECT_EQ(as_utf8(""), "");
  EXPECT_EQ(as_utf8("pl\xc3\xa4in"), "pl\xc3\xa4in");
  const std::vector<std::pair<const char*, int>> replaced = {{"\x80", 1},
                                                             {"\xe2\x82", 1},
                                                             {"\xf0\x9f\x98", 1},
                                                             {"\xed\xa0\x80", 3},
                                                             {"\xe0\x9f\xbf", 3},
                                                             {"\xf0\x8f\xbf\xbf", 4},
                                                             {"\xf4\x90\x80\x80", 4},
                                                             {"\xc0\xaf", 2},
                                                             {"\xf5\x80", 2},
                                                             {"\xf1\x80\x80\xe1\x80\xc2", 3}};
  for (const auto& [bytes, count] : replaced) {
    std::string expected;
    for (int i = 0; i < count; ++i) expected += "\xef\xbf\xbd";
    EXPECT_EQ(as_utf8(bytes), expected) << testing::PrintToString(bytes);
    EXPECT_EQ(as_utf8(bytes + std::string("(")), expected + "(");
  }
  EXPECT_EQ(as_utf8("\xe2\xe2\x82\xac"), "\xef\xbf\xbd\xe2\x82\xac");
}

}  // namespace
}  // namespace tutti
