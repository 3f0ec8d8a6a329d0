#include "io/journal/journal_encoding.h"

#include <algorithm>
#include <cstring>

#include "runtime/error.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tutti {

std::array<uint8_t, 12> journal_preamble() {
  std::array<uint8_t, 12> bytes{'t', 'u', 't', 't', 'i', 'j', 'n', 'l'};
  for (int i = 0; i < 4; ++i) bytes[8 + i] = static_cast<uint8_t>(kJournalVersion >> (8 * i));
  return bytes;
}

uint16_t journal_checksum(std::span<const uint8_t> record, uint64_t offset) {
  return static_cast<uint16_t>(XXH3_64bits_withSeed(record.data(), record.size(), offset));
}

void RecordEncoder::fixed(uint64_t value, int bytes) {
  make_room(bytes);
  for (int i = 0; i < bytes; ++i) buffer_[end_++] = static_cast<uint8_t>(value >> (8 * i));
}

void RecordEncoder::raw(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  make_room(bytes.size());
  std::memcpy(buffer_.data() + end_, bytes.data(), bytes.size());
  end_ += bytes.size();
}

void RecordEncoder::text(std::string_view text) {
  number(text.size());
  raw(std::as_bytes(std::span(text)));
}

std::span<const uint8_t> RecordEncoder::finish(uint64_t offset) {
  const size_t payload_bytes = end_ - kFront;
  TUTTI_ASSERT(payload_bytes <= kMaxJournalPayload, "a journal record holds at most 16 MiB");
  size_t length_bytes = 1;
  while (payload_bytes >> (7 * length_bytes) != 0) ++length_bytes;
  const size_t begin = kFront - length_bytes - 1;
  buffer_[begin] = static_cast<uint8_t>(kind_);
  for (size_t i = 0; i < length_bytes; ++i) {
    const uint8_t more = i + 1 < length_bytes ? 0x80 : 0;
    buffer_[begin + 1 + i] = static_cast<uint8_t>((payload_bytes >> (7 * i)) & 0x7F) | more;
  }
  fixed(journal_checksum({buffer_.data() + begin, end_ - begin}, offset), kJournalChecksumBytes);
  return {buffer_.data() + begin, end_ - begin};
}

std::span<const uint8_t> PayloadReader::raw(size_t bytes) {
  if (bytes > rest_.size()) {
    good_ = false;
    bytes = 0;
  }
  const auto read = rest_.first(bytes);
  rest_ = rest_.subspan(bytes);
  return read;
}

uint64_t PayloadReader::number() {
  uint64_t value = 0;
  for (size_t i = 0; i < std::min(kMaxVarintBytes, rest_.size()); ++i) {
    value |= static_cast<uint64_t>(rest_[i] & 0x7F) << (7 * i);
    if (rest_[i] < 0x80) {
      rest_ = rest_.subspan(i + 1);
      return value;
    }
  }
  good_ = false;
  return 0;
}

int64_t PayloadReader::signed_number() {
  const uint64_t value = number();
  return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

uint64_t PayloadReader::fixed(int bytes) {
  uint64_t value = 0;
  int shift = 0;
  for (const uint8_t byte : raw(bytes)) {
    value |= static_cast<uint64_t>(byte) << shift;
    shift += 8;
  }
  return value;
}

size_t PayloadReader::count(size_t bytes_each) {
  const uint64_t count = number();
  if (count <= rest_.size() / bytes_each) return count;
  good_ = false;
  return 0;
}

std::string_view PayloadReader::text() {
  const auto bytes = raw(number());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace tutti
