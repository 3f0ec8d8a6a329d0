#pragma once

#include <string>
#include <vector>

#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
#include "runtime/actor/actor.h"
#include "runtime/log.h"
#include "runtime/recorder.h"

namespace tutti {

// Has a rank's durable logs on the disk before its part of a checkpoint counts. A disk takes its time, but
// training may come to wait for the checkpoint: beyond kOrdinary a checkpoint a log uses its patience up,
// which is as long as it is waited for at most. That comes back at a tenth of the time over all logs, so that
// in the long run no more is waited than that.
class DurableLogs {
 public:
  static constexpr Nanoseconds kOrdinary = std::chrono::milliseconds(50);

  DurableLogs(const std::vector<DurableLog>& logs, Log& log, Recorder& recorder);

  // Returns once the records of the checkpoint's steps are on the disk, or have been waited for long enough;
  // a log that is late is named in a warning. One that was late n times in a row is left out of 2^n - 1
  // checkpoints, so that one that always is costs next to nothing.
  void sync(Context& context, const std::string& checkpoint);

 private:
  struct One {
    DurableLog log;
    Nanoseconds patience = log.wait_at_most;
    Nanoseconds ordinary = {};  // left of this checkpoint's
    Nanoseconds waited = {};    // for this checkpoint
    Pending<MetricsWritten> writing = {};
    int late = 0;       // times in a row
    int64_t spare = 0;  // checkpoints that do not wait for it

    bool is_waited_for();
  };

  void wait(Context& context, const std::string& asked);
  void regain(TimePoint now);
  std::string decided(const char* what, const std::string& measured);
  std::string due();
  std::string done() const;

  std::vector<One> logs_;
  TimePoint seen_{};  // when patience was looked at
  Log& log_;
  Recorder& recorder_;
};

}  // namespace tutti
