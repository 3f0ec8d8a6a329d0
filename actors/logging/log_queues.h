#pragma once

#include <deque>
#include <vector>

#include "actors/logging/wait_budget.h"
#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
#include "runtime/actor/actor.h"
#include "runtime/log.h"
#include "runtime/recorder.h"

namespace tutti {

// The sender sides of the queues to a rank's LogWriters. What a full queue has no room for is dropped and
// counted here, since a LogWriter may never return. Before that the queue is waited for, as long as its
// destination says (LoggerDestination::full_queue_timeout) and while it keeps up else. This is decided a
// window of messages at a time, and recorded: a replay drops the same.
class LogQueues {
 public:
  static constexpr int kWindow = 32;      // messages; the last one is answered once all are written
  static constexpr int kMostWindows = 4;  // under way

  LogQueues(const RankActors& actors, Log& log, Recorder& recorder);

  void start(Context& context, const LogStart& start);
  void send(Context& context, std::vector<LogEntry> entries);
  // After a run's last step: what was dropped of it is sent if there is room now. Warns of how much is lost.
  void end(Context& context);

 private:
  struct Queue {
    ActorId writer;
    std::string name;
    WaitBudget budget;
    std::deque<Pending<LogsTaken>> windows = {};
    bool open = true;                     // this window is sent
    int64_t lost = 0;                     // records
    bool warned = false;                  // that some are
    std::vector<LogEntries> newest = {};  // that were dropped, from the newest step's report on

    bool full();
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
