#pragma once

#include <map>
#include <string>
#include <string_view>

#include "analysis/control_arrows.h"
#include "io/formats/trace_file.h"
#include "io/journal/journal.h"

namespace tutti {

// Draws one rank's journal, record by record. Each actor has a track. A track has a slice for each message,
// from delivery to the last record of the actor before the next message; within the slice each event lasts
// until the next event. Work before the first message is a slice too. Arrows are messages, and control
// packets between the Syncs of two ranks.
class RankTimeline {
 public:
  // `zero`: the start of the trace by the rank's clock.
  RankTimeline(TraceFile& trace, ControlArrows& arrows, int rank, TimePoint zero, const std::string& title);

  void draw(const JournalRecord& record);
  void finish();  // call after the last record

  int64_t messages() const { return messages_; }

 private:
  struct Track {
    TraceFile::Track id;
    Nanoseconds last{};                 // of the last record; times on a track never decrease
    bool slice = false, event = false;  // open on the track
  };

  void draw(const JournalDelivery& delivery);
  void draw(const JournalEvent& event);
  void draw(const JournalEnd& end);
  void draw(const JournalIncomplete& incomplete);
  template <class Other>
  void draw(const Other&) {}

  Track& track_of(std::string_view actor);
  void draw_arrow(const ControlArrows::End& end, const Track& track, Nanoseconds time);
  Nanoseconds monotonic(const Track& track, TimePoint time) const;
  void advance(Track& track, Nanoseconds time);
  void begin(Track& track, std::string_view name, Nanoseconds time, const TraceFile::Args& args);
  void end_event(Track& track);
  void end_slice(Track& track);
  Nanoseconds last_time() const;

  TraceFile& trace_;
  ControlArrows& arrows_;
  int rank_;
  int64_t pid_;
  TimePoint zero_;
  std::map<std::string, Track, std::less<>> tracks_;
  int64_t messages_ = 0;
  bool ended_ = false;
};

}  // namespace tutti
