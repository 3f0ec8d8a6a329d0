#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
#include "runtime/actor/actor.h"
#include "runtime/log.h"

namespace tutti {

// The sender's side of the queue to a LogWriter. Never waits for the LogWriter, which may never return: while
// the queue is full, entries are dropped and counted. No result depends on dropped entries, so the messages
// are not recorded, and a replay may drop other entries.
class LogQueue {
 public:
  // Of the entries that wait; a message counts at least kLeastBytes.
  static constexpr int64_t kMostBytes = 32'000'000, kLeastBytes = 8'000;
  static constexpr int64_t kMostMessages = kMostBytes / kLeastBytes;
  // Of the LogWriter's mailbox, with room for the Supervisor's messages.
  static constexpr int kMailboxCapacity = 4096;

  LogQueue(const LogActor& to, Log& log) : to_(to), log_(log) {}

  void start(Context& context, const LogStart& start) const;
  // Skips a step report that comes within LogActor::report_interval of training time, except the last report.
  void send(Context& context, const LogEntries& entries);
  // After the run's last entries. Warns with the number of lost records.
  void end(Context& context);

 private:
  bool skips(const LogEntries& entries);
  void post(Context& context, const LogEntries& entries);

  LogActor to_;
  Log& log_;
  std::shared_ptr<std::atomic<int64_t>> waiting_ = std::make_shared<std::atomic<int64_t>>(0);  // bytes
  int64_t lost_ = 0;                                                                           // records
  double reported_s_ = -std::numeric_limits<double>::infinity();  // training time of the newest report sent
  LogEntries skipped_ = {};                                       // the newest report, if it was skipped
};

}  // namespace tutti
