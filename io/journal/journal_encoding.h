#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/clock.h"

// The encoding of journals (docs/journal.md), for their writer and reader.
namespace tutti {

inline constexpr uint32_t kJournalVersion = 1;
inline constexpr uint64_t kMaxJournalPayload = uint64_t{1} << 24;
inline constexpr size_t kMaxVarintBytes = 10;
inline constexpr size_t kJournalChecksumBytes = 2;

using JournalTick = std::chrono::duration<int64_t, std::ratio<1, 10'000'000>>;  // 100 ns

enum class JournalKind : uint8_t {
  kHead = 1,
  kName = 2,
  kDelivery = 3,
  kEvent = 4,
  kDigest = 5,
  kParts = 6,
  kInput = 7,
  kEnd = 8,
  kIncomplete = 9,
};

// The magic number and the version, with which every journal begins.
std::array<uint8_t, 12> journal_preamble();

// The checksum of a record at `offset` of the file; `record` excludes the checksum.
uint16_t journal_checksum(std::span<const uint8_t> record, uint64_t offset);

// Encodes one record after the other into a reused buffer.
class RecordEncoder {
 public:
  void begin(JournalKind kind) {
    kind_ = kind;
    end_ = kFront;
  }
  void number(uint64_t value) {
    make_room(kMaxVarintBytes);
    for (; value >= 0x80; value >>= 7) buffer_[end_++] = static_cast<uint8_t>(value | 0x80);
    buffer_[end_++] = static_cast<uint8_t>(value);
  }
  void signed_number(int64_t value) {
    number((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  void fixed(uint64_t value, int bytes);  // little-endian
  void raw(std::span<const std::byte> bytes);
  void text(std::string_view text);

  // The encoded record for `offset` of the file; valid until the next begin().
  std::span<const uint8_t> finish(uint64_t offset);

 private:
  static constexpr size_t kFront =
      1 + kMaxVarintBytes;  // for the kind and the length, which are written last

  void make_room(size_t bytes) {
    if (buffer_.size() - end_ < bytes) buffer_.resize(2 * buffer_.size() + bytes);
  }

  JournalKind kind_ = JournalKind::kHead;
  size_t end_ = kFront;
  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(256);
};

// Decodes a payload. Reads beyond its end or of malformed numbers return 0 or "", and finished() is then
// false.
class PayloadReader {
 public:
  explicit PayloadReader(std::span<const uint8_t> payload) : rest_(payload) {}

  uint64_t number();
  int64_t signed_number();
  uint64_t fixed(int bytes);
  size_t count(size_t bytes_each);  // a number of items, each of at least `bytes_each` bytes
  std::string_view text();
  void fail() { good_ = false; }  // the caller found an error
  bool finished() const { return good_ && rest_.empty(); }

 private:
  std::span<const uint8_t> raw(size_t bytes);

  std::span<const uint8_t> rest_;
  bool good_ = true;
};

}  // namespace tutti
