#pragma once

#include <deque>
#include <vector>

#include "actors/messages/messages.h"
#include "runtime/actor/actor.h"
#include "runtime/log.h"
#include "runtime/recorder.h"

namespace tutti {

struct RankActors;

// Compute's end of the queue to the Reporter. A machine may be busy and a disk may stall, so a queue that is
// full is waited for, but not for long: kPatience, which comes back at a tenth of the time in which the
// Reporter keeps up. From then on what is reported is dropped and counted, until there is room again. This is
// decided a window of messages at a time, and recorded: a replay drops the same.
class ReportOutlet {
 public:
  static constexpr int kWindow = 32;      // messages; the Reporter is asked to tell when it has taken them
  static constexpr int kMostWindows = 6;  // under way
  static constexpr Nanoseconds kPatience = std::chrono::seconds(1);

  ReportOutlet(const RankActors& cast, Log& log, Recorder& recorder);

  bool any() const { return any_; }  // whether the rank has a Reporter
  // Does nothing where the rank has no Reporter.
  void send(Context& context, Message message);
  // After a run's last step: the newest that was dropped is sent if there is room now, and told how much
  // is lost.
  void end(Context& context);

 private:
  bool has_room(Context& context);
  void wait(Context& context);
  bool full();
  void regain(TimePoint now);
  void pass(Context& context, Message message);
  void drop(Message message);

  bool any_;
  ActorId reporter_;
  Log& log_;
  Recorder& recorder_;
  std::deque<Pending<ReportsTaken>> underway_;  // windows
  int in_window_ = 0;                           // messages so far
  bool open_ = true;                            // this window is sent
  Nanoseconds patience_ = kPatience;
  TimePoint seen_{};  // when the patience was looked at
  int64_t step_ = 0;
  int64_t lost_ = 0;             // lines
  bool told_ = false;            // that some are
  double lost_samples_ = 0;      // of steps whose lines are, which the next step's message adds to its own
  std::vector<Message> newest_;  // that were dropped: of the last step, while nothing was sent since
};

}  // namespace tutti
