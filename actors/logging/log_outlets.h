#pragma once

#include <string>
#include <vector>

#include "actors/messages/messages.h"
#include "runtime/actor/actor.h"
#include "runtime/log.h"

namespace tutti {

struct RankActors;

// Compute's ends of the queues to LogWriters. A queue that is full takes nothing more: what is logged is
// dropped, counted and told of here, since a LogWriter may never return, and Compute never waits.
class LogOutlets {
 public:
  static constexpr int kMostUnderway = 128;  // fewer than a mailbox holds

  LogOutlets(const RankActors& cast, Log& log);

  bool any() const { return !outlets_.empty(); }
  void start(Context& context, const LogStart& start);
  void send(Context& context, std::vector<LogEntry> entries);
  void taken(ActorId writer, int count);
  void end();  // after the last send: tells how much is lost

 private:
  struct Outlet {
    ActorId writer;
    std::string name;
    int underway = 0;
    int64_t lost = 0;   // records
    bool told = false;  // that some are
  };

  void drop(Outlet& outlet, int64_t records);

  std::vector<Outlet> outlets_;
  Log& log_;
};

}  // namespace tutti
