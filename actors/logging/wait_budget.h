#pragma once

#include <algorithm>

#include "runtime/actor/actor.h"

namespace tutti {

// Limits the time spent waiting for a slow log: at most `most` at once, and a tenth of the time in the long
// run. A wait up to `ordinary` is free.
class WaitBudget {
 public:
  explicit WaitBudget(Nanoseconds most, Nanoseconds ordinary = {})
      : most_(most), ordinary_(ordinary), left_(most) {}

  // If the log keeps up, the budget grows by a tenth of the time since the last call, divided by `logs`.
  void regain(TimePoint now, bool keeps_up, int64_t logs = 1) {
    if (keeps_up) left_ = std::min<Nanoseconds>(most_, left_ + (now - seen_) / (kRegainedIn * logs));
    seen_ = now;
  }

  bool is_used_up() const { return ordinary_ + left_ <= Nanoseconds(0); }

  // Waits for the reply while the budget lasts. `waited`: earlier waiting time, counted if the reply is not
  // ready; increased by this call. Every poll counts kPollInterval, so that a busy machine does not use up
  // the budget.
  template <class Reply>
  void wait(Context& context, const Pending<Reply>& reply, Nanoseconds& waited) {
    if (reply.ready()) return;
    const Nanoseconds until = std::min(most_, ordinary_ + left_);
    for (; !reply.ready() && waited < until; waited += kPollInterval)
      reply.ready_by(context.now() + kPollInterval);
    left_ = std::clamp<Nanoseconds>(ordinary_ + left_ - waited, Nanoseconds(0), left_);
  }

 private:
  static constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(1);
  static constexpr int64_t kRegainedIn = 10;  // times the time waited

  Nanoseconds most_, ordinary_, left_;
  TimePoint seen_{};
};

}  // namespace tutti
