#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/journal/journal.h"
#include "runtime/clock.h"

namespace tutti {

// Appends to a rank's journal (io/journal/journal.h says what the records mean). What was appended when a
// method has returned survives the process, however it ends; a power failure may take the last half minute.
// Thread-safe.
//
// A disk that is full or fails ends the journal, not the run, and so does somebody who cuts the file short:
// incomplete() says so, a record too where it can, and from then on all methods do nothing. Texts have at
// most 16 MiB a record.
class JournalWriter {
 public:
  // Replaces what is at `path`.
  JournalWriter(const std::string& path, std::string_view head_json);
  ~JournalWriter();  // gives back the disk space that was taken ahead
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  // Names (of actors, messages, digest keys) may be any texts; the same static string each time costs least.
  void delivery(std::string_view to, std::string_view from, std::string_view message, TimePoint time);
  void event(const JournalEvent& event);
  void digest(std::string_view key, int64_t step, uint64_t value, std::span<const uint16_t> parts = {});
  void parts(std::string_view key, const std::vector<std::string>& names);
  void input(std::string_view what, std::span<const std::byte> bytes);
  void end(std::string_view text);

  // Why the journal is not whole ("digits/journal-0: No space left on device"); "" while it is.
  std::string incomplete() const;
  uint64_t bytes() const;  // written so far

 private:
  class Tape;
  std::unique_ptr<Tape> tape_;
};

}  // namespace tutti
