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

// Has a rank's durable logs on the disk before its part of a checkpoint counts. Training may come to wait for
// the checkpoint, so beyond kOrdinary a checkpoint a log is waited for within a WaitBudget.
class DurableLogs {
 public:
  static constexpr Nanoseconds kOrdinary = std::chrono::milliseconds(50);

  DurableLogs(const std::vector<LogActor>& logs, Log& log, Recorder& recorder);

  // Returns once the records of the checkpoint's steps are on the disk, or have been waited for long enough.
  // A warning names a log that begins to be late.
  void sync(Context& context, const std::string& checkpoint);

 private:
  struct One {
    ActorId writer;
    std::string name;
    WaitBudget budget;
    Pending<LogSynced> syncing = {};
    bool late = false;
  };

  std::string decided(RecordedInput what, const std::string& measured);

  std::vector<One> logs_;
  Log& log_;
  Recorder& recorder_;
};

}  // namespace tutti
