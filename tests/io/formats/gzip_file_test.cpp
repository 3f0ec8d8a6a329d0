#include "io/formats/gzip_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/error.h"
#include "tests/io/formats/gzipped.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class GzipFileTest : public testing::Test {
 protected:
  std::string read(const std::string& text) const {
    write_text(path_, text);
    const GzipFile file(path_);
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
  }
  std::string why_not(const std::string& text) const {
    return message_of<UserError>([&] { read(text); });
  }

  Scratch folder_;
  std::string path_ = folder_.path("file");
  // Longer than what is uncompressed at once.
  std::string long_ = std::string(300'000, 'a') + "b" + std::string(300'000, 'c');
};

TEST_F(GzipFileTest, PlainFilesAreReadAsTheyAre) {
  for (const std::string text : {"", "\x1f", "plain"}) EXPECT_EQ(read(text), text);
}

TEST_F(GzipFileTest, WhatGzipCompressedIsUncompressed) {
  for (const std::string& text : {std::string(), std::string("text"), long_}) {
    ASSERT_NE(gzipped(text), text);
    EXPECT_EQ(read(gzipped(text)), text);
  }
}

TEST_F(GzipFileTest, SeveralMembersAreOneText) { EXPECT_EQ(read(gzipped("one") + gzipped("two")), "onetwo"); }

TEST_F(GzipFileTest, ATruncatedFileIsNamedWithItsEnd) {
  const std::string whole = gzipped(long_);
  for (const std::size_t length : {std::size_t{5}, whole.size() / 2, whole.size() - 1})
    EXPECT_EQ(why_not(whole.substr(0, length)),
              path_ + ": ends at byte " + std::to_string(length) + ", before its gzip data do: truncated");
}

TEST_F(GzipFileTest, ADamagedFileIsNamedWithTheByte) {
  std::string damaged = gzipped("some text that is long enough");
  damaged[damaged.size() - 6] ^= 1;  // in the checksum
  EXPECT_THAT(why_not(damaged), AllOf(StartsWith(path_ + ": byte "), HasSubstr("incorrect data check")));
  const std::string whole = gzipped("text");
  EXPECT_THAT(why_not(whole + "rest"),
              AllOf(StartsWith(path_ + ": byte "), HasSubstr("incorrect header check")));
}

TEST_F(GzipFileTest, AMissingFileIsNamed) {
  EXPECT_THAT(message_of<UserError>([&] { GzipFile(folder_.path("none")); }),
              AllOf(HasSubstr(folder_.path("none")), HasSubstr("No such file")));
}

TEST_F(GzipFileTest, OnlyWhatLacksIsLookedForUnderGz) {
  EXPECT_EQ(plain_or_gzip(path_), path_);
  write_text(path_ + ".gz", gzipped("text"));
  EXPECT_EQ(plain_or_gzip(path_), path_ + ".gz");
  write_text(path_, "text");
  EXPECT_EQ(plain_or_gzip(path_), path_);
}

}  // namespace
}  // namespace tutti
