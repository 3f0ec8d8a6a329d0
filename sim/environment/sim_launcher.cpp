#include "sim/environment/sim_launcher.h"

namespace tutti {
namespace {

constexpr Nanoseconds kRoundEvery = std::chrono::milliseconds(20);
constexpr Nanoseconds kGrace = std::chrono::seconds(1);

}  // namespace

std::optional<TimePoint> SimLauncher::idle(Context& context) {
  look(context);
  const TimePoint now = context.now();
  if (terminate_at_ && now >= *terminate_at_) {
    terminate_at_.reset();
    to_those_that_run(job_.terminate);
  }
  if (kill_at_ && now >= *kill_at_) to_those_that_run(job_.kill);
  return now + kRoundEvery;
}

void SimLauncher::look(Context& context) {
  int ended = 0;
  for (int rank = 0; rank < job_.ranks; ++rank) {
    const Life life = job_.life(rank);
    if (life == Life::kRuns) continue;
    ++ended;
    if (cleaned_[rank]) continue;
    cleaned_[rank] = true;
    job_.clean_up(rank);
    if (life != Life::kEndedBadly || kill_at_) continue;
    terminate_at_ = context.now() + kGrace;
    kill_at_ = *terminate_at_ + kGrace;
  }
  if (ended == job_.ranks) context.stop();
}

template <class Action>
void SimLauncher::to_those_that_run(const Action& action) {
  for (int rank = 0; rank < job_.ranks; ++rank)
    if (job_.life(rank) == Life::kRuns) action(rank);
}

}  // namespace tutti
