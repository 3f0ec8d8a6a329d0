#include "io/formats/png.h"

#include <gtest/gtest.h>

#include <vector>

namespace tutti {
namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

// The output of Python's zlib for the same pixels at level 0.
TEST(PngTest, HasTheBytesOfAFileWithoutCompression) {
  const std::vector<uint8_t> grey = {0, 1, 2, 253, 254, 255}, colours = {255, 0, 0, 0, 128, 64};
  const std::string grey_file =
      "89504e470d0a1a0a0000000d4948445200000003000000020800000000b81f39c6000000134944415478"
      "01010800f7ff0000010200fdfeff060a02feb0beee0c0000000049454e44ae426082";
  const std::string colour_file =
      "89504e470d0a1a0a0000000d49484452000000020000000108020000007b40e8dd000000124944415478"
      "01010700f8ff00ff0000008040074101c01e2ffb100000000049454e44ae426082";
  EXPECT_EQ(png(grey, /*height=*/2, /*width=*/3, 1), from_hex(grey_file));
  EXPECT_EQ(png(colours, /*height=*/1, /*width=*/2, 3), from_hex(colour_file));
}

// 300 x 300 bytes are more than a stored block holds.
TEST(PngTest, LargeImagesTakeSeveralBlocks) {
  const std::vector<uint8_t> pixels(300 * 300, 7);
  const std::string file = png(pixels, 300, 300, 1);
  const std::size_t data = 300 * 301, blocks = 2;
  const std::size_t header = 8 + 25, chunk = 12, zlib = 2 + 4;
  EXPECT_EQ(file.size(), header + chunk + zlib + 5 * blocks + data + chunk);
  const std::size_t first = header + 8 + 2;
  EXPECT_EQ(file.substr(first, 5), std::string("\0\xff\xff\0\0", 5));
  EXPECT_EQ(file[first + 5 + 65535], '\1') << "the last block";
}

}  // namespace
}  // namespace tutti
