#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/control_arrows.h"
#include "analysis/rank_work.h"
#include "io/formats/trace_file.h"
#include "io/journal/journal.h"

namespace tutti {

// Numbers that a trace shows as curves: a value at the end of each step.
struct StepCounter {
  std::string name;                  // "samples/s"
  std::map<int64_t, double> values;  // by step; finite
};

// Draws one rank's journal, record by record: a track for the steps and one for each actor (RankWork says
// what is on them), arrows for messages, and for control packets between the Syncs of two ranks.
class RankTimeline final : private WorkSink {
 public:
  // `zero`: the start of the trace by the rank's clock.
  RankTimeline(TraceFile& trace, ControlArrows& arrows, const RecordedJob& head, TimePoint zero);

  void add(StepCounter counter) { counters_.push_back(std::move(counter)); }
  void draw(const JournalRecord& record);
  void finish();  // call after the last record

  int64_t messages() const { return work_.messages(); }

 private:
  void draw(const JournalDelivery& delivery) { work_.read(delivery); }
  void draw(const JournalEvent& event);
  void draw(const JournalEnd& end) { draw_end("end: " + end.text); }
  void draw(const JournalIncomplete& cut) { draw_end("not recorded from here: " + cut.why); }
  template <class Other>
  void draw(const Other&) {}
  void draw_end(const std::string& text);

  void add_track(int track, std::string_view name) override { trace_.name_thread(track_of(track), name); }
  void begin(int track, Activity work, std::string_view name, Nanoseconds time, const Args& args) override;
  void end(int track, Nanoseconds time) override { trace_.end(track_of(track), time); }
  void mark(int track, std::string_view name, Nanoseconds time, const Args& args) override;
  void leave(int track, const JournalDelivery& delivery, Nanoseconds time) override;
  void arrive(int track, const JournalDelivery& delivery, Nanoseconds time) override;
  void step_done(int64_t step, Nanoseconds time) override;

  TraceFile::Track track_of(int track) const;
  int64_t message_arrow() const;

  TraceFile& trace_;
  ControlArrows& arrows_;
  int rank_;
  int64_t pid_;
  TimePoint zero_;
  RankWork work_;
  std::vector<StepCounter> counters_;
  bool ended_ = false;
};

}  // namespace tutti
