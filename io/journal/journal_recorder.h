#pragma once

#include <string>

#include "io/journal/journal_writer.h"
#include "io/journal/recorded_run.h"
#include "runtime/recorder.h"

namespace tutti {

// Writes a rank's journal, and keeps the last happenings for the report of a fatal end.
class JournalRecorder final : public Recorder {
 public:
  JournalRecorder(const std::string& path, const RecordedJob& job);

  void record(const Happening& happening) override;
  std::vector<Happening> last(int count) const override { return ring_.last(count); }
  std::size_t peek(std::span<Happening> out) const override { return ring_.peek(out); }
  void delivered(const Delivery& delivery) override;
  bool digests() const override { return full_; }
  void digest(const Digest& digest) override;
  void name_parts(std::string_view thing, const std::vector<std::string>& names) override;
  double answer(std::string_view what, double measured) override;
  std::string answer(std::string_view what, std::string measured) override;
  std::string trouble() const override { return writer_.incomplete(); }
  void end(const std::string& how) override;

 private:
  bool full_;
  JournalWriter writer_;
  RingRecorder ring_;
};

}  // namespace tutti
