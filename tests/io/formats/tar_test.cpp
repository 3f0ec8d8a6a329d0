#include "io/formats/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string header(const std::string& name, char type, const std::string& size,
                   const std::string& prefix = "") {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  block.replace(124, size.size(), size);
  block[156] = type;
  block.replace(257, 6, std::string("ustar\0", 6));
  block.replace(345, prefix.size(), prefix);
  block.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  char octal[8];
  std::snprintf(octal, sizeof octal, "%06o", sum);
  block.replace(148, 7, std::string(octal, 7));
  return block;
}

std::string padded(std::string data) {
  data.resize((data.size() + 511) / 512 * 512);
  return data;
}

// The names and the contents.
std::vector<std::pair<std::string, std::string>> members_of(const std::string& tar) {
  std::vector<std::pair<std::string, std::string>> found;
  read_tar(std::as_bytes(std::span(tar)), [&](const TarMember& member) {
    found.emplace_back(member.name, tar.substr(member.first, member.bytes));
  });
  return found;
}

// A pax header with a name and a size, before a header that says otherwise; ended by GNU's size of base 256.
TEST(Tar, LongNamesAndSizesAreThoseOfPaxAndGnu) {
  std::string tar = header("pax", 'x', "00000000025") + padded("12 path=a/b\n9 size=3\n") +
                    header("short", '0', "00000000007") + padded("abcdefg");
  std::string binary(12, '\0');
  binary[0] = static_cast<char>(0x80);
  binary[11] = 4;
  tar += header("././@LongLink", 'L', "00000000005") + padded("long\n") + header("x", '0', binary) +
         padded("wxyz");
  EXPECT_THAT(members_of(tar), ElementsAre(std::pair("a/b", "abc"), std::pair("long\n", "wxyz")));
}

TEST(Tar, MembersFollowAtTheNextBlock) {
  const std::string block(512, 'x');
  const std::string tar = header("a", '0', "00000001000") + block + header("b", '0', "00000000000") +
                          header("c", '0', "00000001001", "in/a") + padded(block + 'y');
  EXPECT_THAT(members_of(tar),
              ElementsAre(std::pair("a", block), std::pair("b", ""), std::pair("in/a/c", block + 'y')));
}

TEST(Tar, AFileThatEndsWithinAMemberOrItsBlockIsCutOff) {
  const std::string whole = header("a", '0', "00000000007") + padded("abcdefg") + std::string(1024, '\0');
  const auto cut_at = [&](std::size_t bytes) {
    return message_of<UserError>([&] { members_of(whole.substr(0, bytes)); });
  };
  EXPECT_EQ(cut_at(515), "byte 515: the file ends here, within a, which has 7 bytes: cut off");
  EXPECT_EQ(cut_at(600), "byte 600: the file ends here, within a: cut off");
  EXPECT_EQ(cut_at(30), "byte 30: the file ends here, within a header: cut off");
  EXPECT_TRUE(read_tar(std::as_bytes(std::span(whole)), [](const TarMember&) {}));
  EXPECT_FALSE(read_tar(std::as_bytes(std::span(whole)).first(1024), [](const TarMember&) {}));
}

TEST(Tar, ACompressedFileIsCalledSo) {
  for (const auto& [begin, kind] :
       {std::pair(std::string("\x1f\x8b\x08"), "gzip"), {std::string("\x28\xb5\x2f\xfd"), "zstd"}})
    EXPECT_THAT(message_of<UserError>([&, text = padded(begin)] { members_of(text); }),
                HasSubstr(std::string("compressed by ") + kind + ": uncompress it"));
}

}  // namespace
}  // namespace tutti
