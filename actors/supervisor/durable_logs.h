#pragma once

#include <string>
#include <vector>

#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
#include "runtime/actor/actor.h"
#include "runtime/log.h"

namespace tutti {

// Writes a rank's durable logs to the disk before the rank's part of a checkpoint counts. Only the time of
// publishing depends on them, so nothing of it is recorded.
class DurableLogs {
 public:
  // The wait for a log that was late the last time; while it has not answered then, there is none.
  static constexpr Nanoseconds kLateTimeout = std::chrono::milliseconds(50);

  DurableLogs(const std::vector<LogActor>& logs, Log& log);

  // Returns once the records of the checkpoint's steps are on the disk, or after LogActor::sync_timeout. A
  // warning names a log that is late, once until it is in time.
  void sync(Context& context, const std::string& checkpoint);

 private:
  struct DurableLog {
    LogActor to;
    Pending<LogSynced> syncing = {};
    TimePoint until{};  // of `syncing`
    bool late = false;
  };

  std::vector<DurableLog> logs_;
  Log& log_;
};

}  // namespace tutti
