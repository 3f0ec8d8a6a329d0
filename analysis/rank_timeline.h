#pragma once

#include <map>
#include <string>
#include <string_view>

#include "analysis/control_arrows.h"
#include "io/formats/trace_file.h"
#include "io/journal/journal.h"

namespace tutti {

// Draws one rank's journal, record by record: a track for each actor, on it a slice for each message that it
// handled, from its delivery to the last sign of the actor before the next one, and within the slice the
// actor's events, each up to the one after it. What an actor does before its first message is a slice too.
// Arrows are messages, and control packets between the Syncs of two ranks.
class RankTimeline {
 public:
  // `zero`: the time by the rank's clock at which the trace begins.
  RankTimeline(TraceFile& trace, ControlArrows& arrows, int rank, TimePoint zero, const std::string& title);

  void take(const JournalRecord& record);
  void finish();  // there are no more records

  int64_t messages() const { return messages_; }

 private:
  struct Lane {
    TraceFile::Track track;
    Nanoseconds sign{};                 // the last; nothing on the track is later
    bool slice = false, event = false;  // that are open
  };

  void take(const JournalDelivery& delivery);
  void take(const JournalEvent& event);
  void take(const JournalEnd& end);
  void take(const JournalIncomplete& incomplete);
  template <class Other>
  void take(const Other&) {}

  Lane& lane(std::string_view actor);
  void draw(const ControlArrows::End& end, const Lane& lane, Nanoseconds time);
  Nanoseconds later(const Lane& lane, TimePoint time) const;
  void sign(Lane& lane, Nanoseconds time);
  void begin(Lane& lane, std::string_view name, Nanoseconds time, const TraceFile::Args& args);
  void end_event(Lane& lane);
  void end_slice(Lane& lane);
  Nanoseconds last_sign() const;

  TraceFile& trace_;
  ControlArrows& arrows_;
  int rank_;
  int64_t pid_;
  TimePoint zero_;
  std::map<std::string, Lane, std::less<>> lanes_;
  int64_t messages_ = 0;
  bool ended_ = false;
};

}  // namespace tutti
