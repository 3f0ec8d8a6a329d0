#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/journal/growing_file.h"
#include "io/journal/journal.h"
#include "io/journal/journal_encoding.h"
#include "io/journal/journal_names.h"
#include "runtime/clock.h"

namespace tutti {

// Appends to a rank's journal; io/journal/journal.h describes the records, of at most 16 MiB each. A record
// survives the end of the process once its method has returned; a power failure may lose the last half
// minute. Thread-safe.
//
// A full or failing disk, or a file truncated by another process, ends the journal but not the run:
// incomplete() then gives the reason, as does a last record if it fits, and all methods do nothing.
class JournalWriter {
 public:
  // Replaces a file at `path`.
  JournalWriter(const std::string& path, std::string_view head_json);

  // Names of actors, messages and digest keys may be any text; static strings are fastest.
  void delivery(std::string_view to, std::string_view from, std::string_view message, TimePoint time);
  void event(const JournalEvent& event);
  void digest(std::string_view key, int64_t step, uint64_t value, std::span<const uint16_t> parts = {});
  void parts(std::string_view key, const std::vector<std::string>& names);
  void input(std::string_view what, std::span<const std::byte> bytes);
  void end(std::string_view text);

  // Why records are missing ("digits/journal-0: No space left on device"); "" if none are.
  std::string incomplete() const;
  uint64_t bytes() const;  // written so far

 private:
  RecordEncoder& begin(JournalKind kind);
  void append();  // writes the encoded record, unless the journal has ended
  uint32_t number_of(std::string_view name);
  int64_t ticks_since_last(TimePoint time);

  std::string path_;
  mutable std::mutex mutex_;  // guards all below
  mutable GrowingFile file_;
  RecordEncoder encoder_;
  JournalNames names_;
  int64_t last_ticks_ = 0;
  bool ended_ = false;
};

}  // namespace tutti
