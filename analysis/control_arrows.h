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

// Arrows of a timeline between ranks: the control packets in the journals of sender and receiver. (A journal
// may be torn or still growing.) Reads all journals of an attempt once; uses eight bytes per packet.
class ControlArrows {
 public:
  // One end of an arrow.
  struct End {
    int64_t arrow = 0;    // from 1
    bool leaves = false;  // true: the sender's end
    Nanoseconds sent{};   // since the start of the trace
  };

  // `zeros`: for each rank, the start of the trace by the rank's clock.
  ControlArrows(const RecordedRun& run, const std::vector<TimePoint>& zeros);

  // The end of an arrow that belongs to the rank's next event, in the order of the rank's journal; none if
  // the event has no arrow.
  std::optional<End> next(int rank, const JournalEvent& event);

 private:
  struct Route {
    std::vector<Nanoseconds> sent;
    std::size_t received = 0;
    std::size_t left = 0, arrived = 0;  // ends returned by next()
    int64_t first = 0;                  // number of the first arrow
  };

  void count(int rank, const JournalEvent& event, TimePoint zero);

  std::map<std::pair<int64_t, int64_t>, Route> routes_;  // by sender and receiver
};

}  // namespace tutti
