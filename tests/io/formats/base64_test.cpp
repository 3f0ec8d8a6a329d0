#include "io/formats/base64.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

// The vectors of RFC 4648, section 10, and bytes above 127.
TEST(Base64Test, IsThatOfTheStandard) {
  for (const auto& [bytes, text] : {std::pair<std::string, std::string>{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"},
                                    {"\xff\xfe\xfb", "//77"}})
    EXPECT_EQ(base64(bytes), text);
}

}  // namespace
}  // namespace tutti
