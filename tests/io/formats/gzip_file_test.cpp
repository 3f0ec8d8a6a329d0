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
    const GzipFile file(path_, [this](auto) { return most_; });
    EXPECT_FALSE(file.is_cut());
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
  }
  std::string why_not(const std::string& text) const {
    return message_of<UserError>([&] { read(text); });
  }

  Scratch folder_;
  std::string path_ = folder_.path("file");
  uint64_t most_ = 1'000'000;
  // Longer than what is uncompressed at once.
  std::string long_ = std::string(300'000, 'a') + "b" + std::string(300'000, 'c');
};

TEST_F(GzipFileTest, PlainFilesAreReadAsTheyAre) {
  for (const std::string text : {"", "\x1f", "plain"}) EXPECT_EQ(read(text), text);
}

TEST_F(GzipFileTest, FilesOfGzipAreUncompressed) {
  for (const std::string& text : {std::string(), std::string("text"), long_}) {
    ASSERT_NE(gzipped(text), text);
    EXPECT_EQ(read(gzipped(text)), text);
  }
}

TEST_F(GzipFileTest, SeveralMembersAreOneText) { EXPECT_EQ(read(gzipped("one") + gzipped("two")), "onetwo"); }

TEST_F(GzipFileTest, NoMoreIsUncompressedThanTheReaderTakes) {
  write_text(path_, gzipped(std::string(50'000'000, 'x')));
  for (const uint64_t most : {uint64_t{10}, uint64_t{3'000'000}}) {
    std::size_t head_bytes = 0;
    const GzipFile file(path_, [&](std::span<const std::byte> head) {
      head_bytes = head.size();
      return most;
    });
    EXPECT_EQ(head_bytes, GzipFile::kHeadBytes);
    EXPECT_TRUE(file.is_cut());
    EXPECT_EQ(file.bytes().size(), std::max<uint64_t>(GzipFile::kHeadBytes, most + 1));
  }
  most_ = 50'000'000;
  EXPECT_EQ(read(read_text(path_)).size(), most_);
}

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
  EXPECT_THAT(message_of<UserError>([&] { GzipFile(folder_.path("none"), {}); }),
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
