#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/journal/journal.h"
#include "io/journal/journal_encoding.h"

namespace tutti {

// Walks through a journal, also one that is being written.
class JournalCursor {
 public:
  // Throws UserError naming the path when it cannot be opened or holds no journal of this version. (A journal
  // whose writer was killed before its first byte is one without records.)
  explicit JournalCursor(const std::string& path);
  ~JournalCursor();
  JournalCursor(const JournalCursor&) = delete;
  JournalCursor& operator=(const JournalCursor&) = delete;

  // The next record, or none behind the last whole one; asked again, it gives what was written meanwhile.
  // Throws OperatingError naming path and offset when the file cannot be read.
  std::optional<JournalRecord> next();

  // Where the next record begins, or would.
  uint64_t position() const { return position_; }

  // The bytes from position() to the last that is not 0: once next() gave none, what was torn or damaged.
  // Of a journal that is being written, it may count a record that is just being put down.
  uint64_t torn_bytes() const;

 private:
  struct Frame {
    JournalKind kind;
    std::span<const uint8_t> payload;
    uint64_t bytes;
  };

  bool begun();
  std::optional<Frame> frame();
  void fill(uint64_t bytes);
  std::span<const uint8_t> buffered() const;
  size_t read_at(uint64_t offset, std::span<uint8_t> to) const;

  std::optional<JournalRecord> decode(const Frame& frame);
  JournalDelivery delivery(PayloadReader& payload);
  JournalEvent event(PayloadReader& payload);
  JournalDigest digest(PayloadReader& payload) const;
  JournalParts parts(PayloadReader& payload) const;
  JournalInput input(PayloadReader& payload) const;
  std::string_view name(PayloadReader& payload) const;
  TimePoint time(PayloadReader& payload);

  std::string path_;
  int descriptor_ = -1;
  uint64_t position_ = 0;
  std::vector<uint8_t> buffer_;
  uint64_t buffer_begin_ = 0;  // in the file
  std::deque<std::string> names_;
  uint64_t ticks_ = 0;
};

}  // namespace tutti
