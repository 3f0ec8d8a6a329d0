#include <gtest/gtest.h>

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

TEST(Utf8Test, BytesOfNoCharacterAreReplacedOneByOne) {
  EXPECT_EQ(as_utf8(""), "");
  EXPECT_EQ(as_utf8("pl\xc3\xa4in"), "pl\xc3\xa4in");
  EXPECT_EQ(as_utf8("\x80"
                    "a\xe2\x82"),
            "\xef\xbf\xbd"
            "a\xef\xbf\xbd\xef\xbf\xbd");
}

}  // namespace
}  // namespace tutti
