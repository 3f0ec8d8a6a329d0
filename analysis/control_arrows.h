#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "io/journal/journal.h"
#include "io/journal/recorded_run.h"

namespace tutti {

// A timeline's arrows between ranks: of the control packets that are in both journals, the sender's and the
// receiver's. (One of the two may be torn, or still be written.) Reads all journals of a start once, and
// takes eight bytes for each packet.
class ControlArrows {
 public:
  // One end of an arrow.
  struct End {
    int64_t arrow = 0;    // from 1
    bool leaves = false;  // or arrives
    Nanoseconds sent{};   // since the trace began
  };

  // `zeros`: of each rank, the time by its clock at which the trace begins.
  ControlArrows(const RecordedRun& run, const std::vector<TimePoint>& zeros);

  // What the rank's next event, in its journal's order, is an end of; none: of no arrow.
  std::optional<End> next(int rank, const JournalEvent& event);

 private:
  struct Route {
    std::vector<Nanoseconds> sent;
    std::size_t received = 0;
    std::size_t left = 0, arrived = 0;  // as far as next() has come
    int64_t first = 0;                  // arrow
  };

  void count(int rank, const JournalEvent& event, TimePoint zero);

  std::map<std::pair<int64_t, int64_t>, Route> routes_;  // by sender and receiver
};

}  // namespace tutti
