#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/journal/journal.h"
#include "io/journal/journal_encoding.h"
#include "io/journal/recorded_run.h"
#include "io/mapped_file.h"
#include "runtime/clock.h"
#include "runtime/recorder.h"

namespace tutti {

// Numbers names in the order of their first use, from 0. A cache by address finds static texts without
// hashing; the texts are compared, since an address may be reused.
class JournalNames {
 public:
  std::optional<uint32_t> find(std::string_view text) {
    Cached& cached = cached_[slot_of(text.data())];
    if (cached.number && cached.text == text) return cached.number;
    return find_by_content(text, cached);
  }
  void add(std::string_view text) {
    numbers_.emplace(texts_.emplace_back(text), static_cast<uint32_t>(numbers_.size()));
  }

 private:
  struct Cached {
    std::string_view text;
    std::optional<uint32_t> number;
  };

  static size_t slot_of(const char* address) {
    return (reinterpret_cast<uintptr_t>(address) * 0x9E3779B97F4A7C15) >> 56;
  }
  std::optional<uint32_t> find_by_content(std::string_view text, Cached& cached) {
    const auto number = numbers_.find(text);
    if (number == numbers_.end()) return std::nullopt;
    cached = {number->first, number->second};
    return number->second;
  }

  std::array<Cached, 256> cached_;
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, uint32_t> numbers_;
};

// A new file that grows at its end; appended bytes survive a kill -9. The file is mapped, so to append is to
// copy. Disk space is reserved in advance, so a last record still fits on a full disk. No function throws,
// since no error may end a run. Not thread-safe.
class GrowingFile {
 public:
  static constexpr uint64_t kReservedBytes = uint64_t{1} << 20;

  // Unlinks an older file at the path; processes that have that file open keep its contents.
  explicit GrowingFile(const std::string& path);
  ~GrowingFile();  // cuts off the reserved space
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  // Writes at size() if `spare` more bytes fit after `bytes`. False without that space; later calls then
  // succeed only within the reserved space.
  bool append(std::span<const uint8_t> bytes, uint64_t spare);

  uint64_t size() const { return size_; }
  // Why bytes are missing; "" if none are. Checks the file's size: another process may have truncated it.
  std::string error();

 private:
  bool extend(uint64_t bytes);
  int reserve(uint64_t end);
  bool truncated();

  int descriptor_ = -1;
  int error_ = 0;  // an errno; 0 = none
  bool truncated_ = false;
  uint64_t size_ = 0;
  uint64_t reserved_ = 0;                     // the file's size on disk in bytes
  std::unique_ptr<WritableMapping> mapping_;  // of bytes mapped_from_ to reserved_
  uint64_t mapped_from_ = 0;
};

// Appends to a rank's journal; io/journal/journal.h describes the records, of at most 16 MiB each. A record
// survives the end of the process once its method has returned; a power failure may lose the last half
// minute. Thread-safe.
//
// A full or failing disk, or a file truncated by another process, ends the journal but not the run:
// incomplete() then gives the reason, as does a last record if there is space, and all methods have no
// effect.
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

// Writes a rank's journal and keeps the last trace events for the report of a crash.
class JournalRecorder final : public Recorder {
 public:
  JournalRecorder(const std::string& path, const RecordedJob& job);

  void record(const TraceEvent& event) override;
  std::vector<TraceEvent> last(int count) const override { return ring_.last(count); }
  std::size_t peek(std::span<TraceEvent> out) const override { return ring_.peek(out); }
  void delivered(const Delivery& delivery) override;
  bool digests() const override { return full_; }
  void digest(const Digest& digest) override;
  void name_parts(std::string_view key, const std::vector<std::string>& names) override;
  double input(RecordedInput what, double measured) override;
  std::string input(RecordedInput what, std::string measured) override;
  std::string incomplete() const override { return writer_.incomplete(); }
  void end(const RankEnd& end) override;

 private:
  bool full_;
  JournalWriter writer_;
  RingRecorder ring_;
};

}  // namespace tutti
