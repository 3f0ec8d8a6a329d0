#include "io/journal/journal_reader.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{1} << 16;
constexpr uint64_t kMaxHeaderBytes = 1 + kMaxVarintBytes;
constexpr size_t kMagicBytes = 8;

using Bytes = std::span<const uint8_t>;

uint32_t version_of(Bytes preamble) {
  return static_cast<uint32_t>(PayloadReader(preamble.subspan(kMagicBytes, 4)).fixed(4));
}

// The extent of a record, from its length field.
struct Outline {
  uint64_t payload_begin;
  uint64_t payload_bytes;

  uint64_t checksum_begin() const { return payload_begin + payload_bytes; }
  uint64_t bytes() const { return checksum_begin() + kJournalChecksumBytes; }
};

std::optional<Outline> outline_of(Bytes bytes) {
  if (bytes.empty() || bytes[0] == 0) return std::nullopt;
  uint64_t length = 0;
  for (size_t i = 1; i < std::min<size_t>(bytes.size(), kMaxHeaderBytes); ++i) {
    length |= static_cast<uint64_t>(bytes[i] & 0x7F) << (7 * (i - 1));
    if (length > kMaxJournalPayload) return std::nullopt;
    if (bytes[i] < 0x80) return Outline{i + 1, length};
  }
  return std::nullopt;
}

// The extent of the record at the front of `bytes`, which are at `offset` of the file; nothing if there is no
// whole record with a right checksum.
std::optional<Outline> whole_record(Bytes bytes, uint64_t offset) {
  const auto outline = outline_of(bytes);
  if (!outline || outline->bytes() > bytes.size()) return std::nullopt;
  const uint64_t end = outline->checksum_begin();
  const uint64_t sum = bytes[end] | bytes[end + 1] << 8;
  return sum == journal_checksum(bytes.first(end), offset) ? outline : std::nullopt;
}

// `bytes`: at `offset` of the file; `torn`: how many may not be zeros. A killed writer may have copied any
// bytes of its last record. So bytes beyond that record's length are damage, and so are records behind it:
// two in a row, or the file's last, since a checksum has only 16 bits.
bool holds_more_than_torn_record(Bytes bytes, uint64_t torn, uint64_t offset) {
  const auto outline = outline_of(bytes);
  if (outline ? torn > outline->bytes() : bytes[0] != 0 && bytes.size() >= kMaxHeaderBytes) return true;
  for (uint64_t at = 1; at < torn; ++at) {
    const auto record = whole_record(bytes.subspan(at), offset + at);
    const uint64_t after = record ? at + record->bytes() : 0;
    if (record && (after >= torn || whole_record(bytes.subspan(after), offset + after))) return true;
  }
  return false;
}

// True for a preamble that is not fully written: cut, or with zeros in place of bytes still to come.
bool may_become_journal(Bytes bytes) {
  const auto preamble = journal_preamble();
  const bool cut = bytes.size() < preamble.size() && std::equal(bytes.begin(), bytes.end(), preamble.begin());
  const bool being_written = bytes[0] == 0 && std::equal(bytes.begin(), bytes.end(), preamble.begin(),
                                                         [](uint8_t type, uint8_t expected) {
                                                           return type == 0 || type == expected;
                                                         });
  return cut || being_written;
}

}  // namespace

JournalCursor::JournalCursor(const std::string& path) : path_(path), file_(path) {
  if (!file_.problem().empty()) throw UserError(path + ": cannot be read: " + file_.problem());
  skip_preamble();
}

// True if the file has a preamble; position() is then after it.
bool JournalCursor::skip_preamble() {
  if (position_ > 0) return true;
  const auto expected = journal_preamble();
  std::array<uint8_t, expected.size()> magic{};
  const Bytes bytes(magic.data(), read_at(0, magic));
  if (std::equal(bytes.begin(), bytes.end(), expected.begin(), expected.end())) {
    position_ = expected.size();
    return true;
  }
  if (bytes.empty() || may_become_journal(bytes)) return false;
  const bool has_magic = bytes.size() == expected.size() &&
                         std::equal(expected.begin(), expected.begin() + kMagicBytes, bytes.begin());
  if (!has_magic) throw UserError(path_ + ": is no journal: it does not begin with \"tuttijnl\" at offset 0");
  throw UserError(path_ + ": is a journal of version " + std::to_string(version_of(bytes)) +
                  " (at offset 8); this tutti reads version " + std::to_string(kJournalVersion));
}

std::optional<JournalRecord> JournalCursor::next() {
  if (!skip_preamble()) return std::nullopt;
  while (const std::optional<Frame> next_frame = frame()) {
    std::optional<JournalRecord> record;
    if (next_frame->kind == JournalKind::kName) {
      PayloadReader payload(next_frame->payload);
      const std::string_view text = payload.text();
      if (!payload.finished()) break;
      names_.emplace_back(text);
    } else {
      record = decode(*next_frame);
      if (!record) break;
    }
    position_ += next_frame->bytes;
    if (record) return record;
  }
  return std::nullopt;
}

// The record at position_, after reading more of the file if the buffer does not hold all of it.
std::optional<JournalCursor::Frame> JournalCursor::frame() {
  const auto whole = [this]() -> std::optional<Frame> {
    const Bytes bytes = buffered();
    const auto outline = whole_record(bytes, position_);
    if (!outline) return std::nullopt;
    return Frame{static_cast<JournalKind>(bytes[0]),
                 bytes.subspan(outline->payload_begin, outline->payload_bytes), outline->bytes()};
  };
  if (const auto payload = whole()) return payload;
  fill(kChunkBytes);
  const auto outline = outline_of(buffered());
  if (outline && outline->bytes() > buffered().size()) fill(outline->bytes());
  return whole();
}

Bytes JournalCursor::buffered() const {
  if (position_ - buffer_begin_ > buffer_.size()) return {};
  return Bytes(buffer_).subspan(position_ - buffer_begin_);
}

// Reads up to `bytes` bytes at position_.
void JournalCursor::fill(uint64_t bytes) {
  buffer_.resize(bytes);
  buffer_begin_ = position_;
  buffer_.resize(read_at(position_, buffer_));
}

size_t JournalCursor::read_at(uint64_t offset, std::span<uint8_t> to) const {
  size_t done = 0;
  while (done < to.size()) {
    const ssize_t got =
        ::pread(file_.descriptor(), to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw OperatingError(path_ + ": cannot be read at offset " + std::to_string(offset + done) + ": " +
                           std::strerror(errno));
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

uint64_t JournalCursor::torn_bytes() const {
  std::vector<uint8_t> chunk(kChunkBytes);
  uint64_t torn = 0;
  for (uint64_t done = 0;;) {
    const size_t got = read_at(position_ + done, chunk);
    const auto last = std::find_if(chunk.rend() - got, chunk.rend(), [](uint8_t byte) { return byte != 0; });
    if (last != chunk.rend()) torn = done + static_cast<uint64_t>(chunk.rend() - last);
    if (got < chunk.size()) return torn;
    done += got;
  }
}

bool JournalCursor::damaged() const {
  const uint64_t torn = torn_bytes();
  if (torn == 0 || position_ == 0) return false;
  const uint64_t longest = kMaxHeaderBytes + kMaxJournalPayload + kJournalChecksumBytes;
  std::vector<uint8_t> bytes(std::min(torn, longest) + kJournalChecksumBytes);  // a checksum may end in zeros
  bytes.resize(read_at(position_, bytes));
  if (torn <= longest && !holds_more_than_torn_record(bytes, torn, position_)) return false;
  bytes.resize(read_at(position_, bytes));
  return !whole_record(bytes, position_);  // else the run continues, and has written the record meanwhile
}

// Nothing if the payload does not fit the kind: then this is no record, although the checksum is right.
std::optional<JournalRecord> JournalCursor::decode(const Frame& frame) {
  PayloadReader payload(frame.payload);
  const uint64_t ticks_before = ticks_;
  std::optional<JournalRecord> record;
  switch (frame.kind) {
    case JournalKind::kHead:
      record = JournalHead{std::string(payload.text())};
      break;
    case JournalKind::kDelivery:
      record = JournalDelivery{name(payload), name(payload), name(payload), time(payload)};
      break;
    case JournalKind::kEvent:
      record = event(payload);
      break;
    case JournalKind::kDigest:
      record = digest(payload);
      break;
    case JournalKind::kParts:
      record = parts(payload);
      break;
    case JournalKind::kInput:
      record = input(payload);
      break;
    case JournalKind::kEnd:
      record = JournalEnd{std::string(payload.text())};
      break;
    case JournalKind::kIncomplete:
      record = JournalIncomplete{std::string(payload.text())};
      break;
    case JournalKind::kName:
      break;
  }
  if (record && payload.finished()) return record;
  ticks_ = ticks_before;
  return std::nullopt;
}

JournalEvent JournalCursor::event(PayloadReader& payload) {
  JournalEvent event;
  event.actor = name(payload);
  event.kind = name(payload);
  event.step = payload.signed_number();
  event.detail = payload.signed_number();
  event.time = time(payload);
  return event;
}

JournalDigest JournalCursor::digest(PayloadReader& payload) const {
  JournalDigest digest;
  digest.key = name(payload);
  digest.step = payload.signed_number();
  digest.value = payload.fixed(8);
  digest.parts.resize(payload.count(2));
  for (uint16_t& part : digest.parts) part = static_cast<uint16_t>(payload.fixed(2));
  return digest;
}

JournalParts JournalCursor::parts(PayloadReader& payload) const {
  JournalParts parts{name(payload), {}};
  parts.names.resize(payload.count(1));
  for (std::string& text : parts.names) text = payload.text();
  return parts;
}

JournalInput JournalCursor::input(PayloadReader& payload) const {
  JournalInput input{name(payload), {}};
  const auto bytes = std::as_bytes(std::span(payload.text()));
  input.bytes.assign(bytes.begin(), bytes.end());
  return input;
}

std::string_view JournalCursor::name(PayloadReader& payload) const {
  const uint64_t number = payload.number();
  if (number < names_.size()) return names_[number];
  payload.fail();
  return {};
}

TimePoint JournalCursor::time(PayloadReader& payload) {
  ticks_ += static_cast<uint64_t>(payload.signed_number());
  return TimePoint(Nanoseconds(static_cast<int64_t>(ticks_ * 100)));
}

}  // namespace tutti
