#include "actors/supervisor/durable_logs.h"

#include <utility>

namespace tutti {

DurableLogs::DurableLogs(const std::vector<LogActor>& logs, Log& log) : log_(log) {
  for (const LogActor& one : logs)
    if (one.sync_timeout > Nanoseconds(0)) logs_.push_back({one});
}

// A log that has not answered yet gets no second request, which would fill its mailbox.
void DurableLogs::sync(Context& context, const std::string& checkpoint) {
  for (DurableLog& one : logs_) {
    if (one.syncing && !one.syncing.ready()) continue;
    one.syncing = context.request<LogSynced>(one.to.writer, SyncLog{});
    one.until = context.now() + (one.late ? kLateTimeout : one.to.sync_timeout);
  }
  for (DurableLog& one : logs_) {
    const bool late = !one.syncing.ready_by(one.until);
    if (late && !std::exchange(one.late, late))
      log_.warning("checkpoint " + checkpoint + " does not wait for " + one.to.name +
                   ", which is slow to write, nor do later checkpoints until it keeps up; a run that "
                   "resumes from them may miss its records");
    one.late = late;
  }
}

}  // namespace tutti
