#pragma once

#include <deque>
#include <limits>
#include <vector>

#include "actors/logging/wait_budget.h"
#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
#include "runtime/actor/actor.h"
#include "runtime/log.h"
#include "runtime/recorder.h"

namespace tutti {

// The sender sides of the queues to a rank's LogWriters. Before each window of messages a full queue is
// waited for, up to LoggerDestination::full_queue_timeout and within a WaitBudget. If there is still no room,
// the messages of the window are dropped and counted, since a LogWriter may never return. The decision is a
// recorded input: a replay drops the same messages. Step reports that come within
// LoggerDestination::report_interval of training time are skipped.
class LogQueues {
 public:
  static constexpr int kWindow = 32;      // messages; the reply to the last one confirms the window
  static constexpr int kMostWindows = 4;  // unconfirmed

  LogQueues(const RankActors& actors, Log& log, Recorder& recorder);

  void start(Context& context, const LogStart& start);
  void send(Context& context, std::vector<LogEntry> entries);
  // After the run's last step: sends the dropped entries of that step if there is room now. Warns with the
  // number of lost records.
  void end(Context& context);

 private:
  struct Queue {
    ActorId writer;
    std::string name;
    WaitBudget budget;
    std::deque<Pending<LogsTaken>> windows = {};
    bool open = true;                     // this window is sent, not dropped
    int64_t lost = 0;                     // records
    bool warned = false;                  // of lost records
    std::vector<LogEntries> newest = {};  // dropped, since the newest step's report

    Nanoseconds report_interval{};
    double reported_s = -std::numeric_limits<double>::infinity();  // training time of the newest report sent
    LogEntries skipped = {};                                       // the newest report, if it was skipped

    bool is_full();
    bool skips(const LogEntries& entries);
    LogEntries with_skipped(const LogEntries& entries);
  };

  void decide(Context& context);
  void wait(Context& context, Queue& queue);
  void post(Context& context, const LogEntries& entries);
  void drop(Queue& queue, const LogEntries& entries);

  std::vector<Queue> queues_;
  Log& log_;
  Recorder& recorder_;
  int in_window_ = 0;  // messages so far
  int64_t step_ = 0;   // of the newest entries
};

}  // namespace tutti
