#pragma once

#include <algorithm>

#include "runtime/actor/actor.h"

namespace tutti {

// How long others wait for a log that is slow: `most` at once, and in the long run a tenth of the time. Waits
// up to `ordinary` are free.
class WaitBudget {
 public:
  explicit WaitBudget(Nanoseconds most, Nanoseconds ordinary = {})
      : most_(most), ordinary_(ordinary), left_(most) {}

  // A tenth of the time since the last call comes back if the log keeps up; `logs` share it.
  void regain(TimePoint now, bool keeps_up, int64_t logs = 1) {
    if (keeps_up) left_ = std::min<Nanoseconds>(most_, left_ + (now - seen_) / (kRegainedIn * logs));
    seen_ = now;
  }

  bool is_used_up() const { return ordinary_ + left_ <= Nanoseconds(0); }

  // Waits for the answer while the budget lasts. `waited` is how long this was waited for until now, which
  // counts if the answer is not here. Each look costs the same, however long it took: a machine that is busy
  // does not use the budget up.
  template <class Reply>
  void wait(Context& context, const Pending<Reply>& answer, Nanoseconds& waited) {
    if (answer.ready()) return;
    const Nanoseconds until = std::min(most_, ordinary_ + left_);
    for (; !answer.ready() && waited < until; waited += kLook) answer.ready_by(context.now() + kLook);
    left_ = std::clamp<Nanoseconds>(ordinary_ + left_ - waited, Nanoseconds(0), left_);
  }

 private:
  static constexpr Nanoseconds kLook = std::chrono::milliseconds(1);
  static constexpr int64_t kRegainedIn = 10;  // times what was waited

  Nanoseconds most_, ordinary_, left_;
  TimePoint seen_{};
};

}  // namespace tutti
