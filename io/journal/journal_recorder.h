#pragma once

#include <string>

#include "io/journal/journal_writer.h"
#include "io/journal/recorded_run.h"
#include "runtime/recorder.h"

namespace tutti {

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
