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
#include "runtime/regular_file.h"

namespace tutti {

// Reads a journal record by record, also while the journal is being written.
class JournalCursor {
 public:
  // Throws UserError naming the path if the file cannot be opened or is no journal of this version. An empty
  // file counts as a journal without records: its writer was killed early.
  explicit JournalCursor(const std::string& path);
  JournalCursor(const JournalCursor&) = delete;
  JournalCursor& operator=(const JournalCursor&) = delete;

  // The next record, or nullopt after the last valid record; a later call returns records written since.
  // Throws OperatingError naming path and offset if the file cannot be read.
  std::optional<JournalRecord> next();

  // The offset of the next record in the file.
  uint64_t position() const { return position_; }

  // The number of bytes from position() to the last nonzero byte: after next() returned nullopt, the size of
  // the torn or damaged part. In a journal that is being written, that part may be a record in progress.
  uint64_t torn_bytes() const;

  // After next() returned nullopt: true if more follows than the one torn record that a killed writer leaves.
  // Then records are lost that the writer wrote.
  bool damaged() const;

 private:
  struct Frame {
    JournalKind kind;
    std::span<const uint8_t> payload;
    uint64_t bytes;
  };

  bool skip_preamble();
  std::optional<Frame> frame();
  void fill(uint64_t bytes);
  std::span<const uint8_t> buffered() const;
  size_t read_at(uint64_t offset, std::span<uint8_t> to) const;

  std::optional<JournalRecord> decode(const Frame& frame);
  JournalEvent event(PayloadReader& payload);
  JournalDigest digest(PayloadReader& payload) const;
  JournalParts parts(PayloadReader& payload) const;
  JournalInput input(PayloadReader& payload) const;
  std::string_view name(PayloadReader& payload) const;
  TimePoint time(PayloadReader& payload);

  std::string path_;
  RegularFile file_;
  uint64_t position_ = 0;
  std::vector<uint8_t> buffer_;
  uint64_t buffer_begin_ = 0;  // in the file
  std::deque<std::string> names_;
  uint64_t ticks_ = 0;
};

}  // namespace tutti
