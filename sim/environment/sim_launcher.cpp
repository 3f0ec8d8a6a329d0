#include "sim/environment/sim_launcher.h"

namespace tutti {
namespace {

constexpr Nanoseconds kCheckInterval = std::chrono::milliseconds(20);
constexpr Nanoseconds kGracePeriod = std::chrono::seconds(1);

}  // namespace

std::optional<TimePoint> SimLauncher::idle(Context& context) {
  check_processes(context);
  const TimePoint now = context.now();
  if (terminate_at_ && now >= *terminate_at_) {
    terminate_at_.reset();
    for_each_running(job_.terminate);
  }
  if (kill_at_ && now >= *kill_at_) for_each_running(job_.kill);
  return now + kCheckInterval;
}

void SimLauncher::check_processes(Context& context) {
  int ended = 0;
  for (int rank = 0; rank < job_.ranks; ++rank) {
    const ProcessState state = job_.state(rank);
    if (state == ProcessState::kRunning) continue;
    ++ended;
    if (cleaned_[rank]) continue;
    cleaned_[rank] = true;
    job_.clean_up(rank);
    if (state != ProcessState::kFailed || kill_at_) continue;
    terminate_at_ = context.now() + kGracePeriod;
    kill_at_ = *terminate_at_ + kGracePeriod;
  }
  if (ended == job_.ranks) context.stop();
}

template <class Action>
void SimLauncher::for_each_running(const Action& action) {
  for (int rank = 0; rank < job_.ranks; ++rank)
    if (job_.state(rank) == ProcessState::kRunning) action(rank);
}

}  // namespace tutti
