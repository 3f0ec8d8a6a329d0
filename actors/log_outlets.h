#pragma once

#include <vector>

#include "actors/messages.h"
#include "runtime/actor.h"

namespace tutti {

// Compute's ends of the queues to LogWriters. A queue that is full takes nothing more: what is logged is
// dropped and counted, and Compute never waits.
class LogOutlets {
 public:
  static constexpr int kMostUnderway = 128;  // fewer than a mailbox holds

  explicit LogOutlets(const std::vector<ActorId>& writers);

  bool any() const { return !outlets_.empty(); }
  void start(Context& context, const LogStart& start);
  void send(Context& context, std::vector<LogEntry> entries);
  void taken(ActorId writer, int count);
  void end(Context& context);  // after the last send: tells what is lost

 private:
  struct Outlet {
    ActorId writer;
    int underway = 0;
    int64_t lost = 0;  // records that the writer does not know of
  };

  std::vector<Outlet> outlets_;
};

}  // namespace tutti
