#include "io/formats/event_file.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

// The check value of CRC-32C (RFC 3720, appendix B.4: 32 bytes of zeros), under TensorFlow's mask.
TEST(EventFileTest, TheChecksumIsCastagnolis) {
  const uint32_t crc = 0x8a9136aa;
  EXPECT_EQ(masked_crc32c(std::string(32, '\0')), ((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

template <class Value>
Value read_at(const std::string& bytes, std::size_t at) {
  Value value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The records of a file, each checked.
std::vector<std::string> records(const std::string& bytes) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = read_at<uint64_t>(bytes, at);
    EXPECT_EQ(read_at<uint32_t>(bytes, at + 8), masked_crc32c(bytes.substr(at, 8)));
    found.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(read_at<uint32_t>(bytes, at + 12 + length), masked_crc32c(found.back()));
    at += 16 + length;
  }
  return found;
}

TEST(EventFileTest, HoldsTheBytesThatProtobufWouldWrite) {
  const Scratch folder;
  PosixDisk disk;
  EventFile file(disk, folder.path("events"), 0.0);
  file.scalars({{"a", 1.0}}, 300, 0.0);
  file.flush(false);
  const auto found = records(read_text(folder.path("events")));
  ASSERT_EQ(found.size(), 2u);
  const std::string no_time(8, '\0');
  EXPECT_EQ(found[0], "\x09" + no_time + std::string("\x10\0\x1a\x0d", 4) + "brain.Event:2");
  EXPECT_EQ(found[1], "\x09" + no_time + "\x10\xac\x02" + "\x2a\x0a" + "\x0a\x08" + "\x0a\x01" + "a" +
                          std::string("\x15\0\0\x80\x3f", 5));
}

TEST(EventFileTest, AnImageIsAPngWithItsSize) {
  const Scratch folder;
  PosixDisk disk;
  EventFile file(disk, folder.path("events"), 0.0);
  file.image("a", {.height = 2, .width = 3, .channels = 1, .png = "png"}, 300, 0.0);
  file.flush(false);
  const std::string picture = "\x08\x02\x10\x03\x18\x01\x22\x03png";
  EXPECT_EQ(records(read_text(folder.path("events"))).at(1), "\x09" + std::string(8, '\0') + "\x10\xac\x02" +
                                                                 "\x2a\x12" + "\x0a\x10" + "\x0a\x01" + "a" +
                                                                 "\x22\x0b" + picture);
}

TEST(EventFileTest, ARecordMayBeLargerThanWhatIsKept) {
  const Scratch folder;
  PosixDisk disk;
  EventFile file(disk, folder.path("events"), 0.0);
  const EventFile::Image large{.height = 1, .width = 1, .channels = 1, .png = std::string(2 << 20, 'x')};
  file.image("too much", large, 1, 0.0);
  file.flush(false);
  file.image("alone", large, 1, 0.0);
  file.flush(false);
  EXPECT_EQ(file.dropped(), 1);
  EXPECT_EQ(records(read_text(folder.path("events"))).size(), 2u) << "the file's version, and one image";
}

}  // namespace
}  // namespace tutti
