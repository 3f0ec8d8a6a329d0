#pragma once

#include <string>
#include <vector>

#include "actors/logging/wait_budget.h"
#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
#include "runtime/actor/actor.h"
#include "runtime/log.h"
#include "runtime/recorder.h"

namespace tutti {

// Writes a rank's durable logs to the disk before the rank's part of a checkpoint counts. Training may have
// to wait for the checkpoint, so the wait for a log beyond kOrdinary is limited by a WaitBudget.
class DurableLogs {
 public:
  static constexpr Nanoseconds kOrdinary = std::chrono::milliseconds(50);

  DurableLogs(const std::vector<LogActor>& logs, Log& log, Recorder& recorder);

  // Returns once the records of the checkpoint's steps are on the disk, or after a timeout. A warning names a
  // log when its first timeout in a row occurs.
  void sync(Context& context, const std::string& checkpoint);

 private:
  struct DurableLog {
    ActorId writer;
    std::string name;
    WaitBudget budget;
    Pending<LogSynced> syncing = {};
    bool late = false;
  };

  std::string recorded(RecordedInput input, const std::string& measured);

  std::vector<DurableLog> logs_;
  Log& log_;
  Recorder& recorder_;
};

}  // namespace tutti
