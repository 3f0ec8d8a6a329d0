#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/actor/actor.h"

namespace tutti {

// mpirun's manners: a second after a rank's process ended badly it sends SIGTERM to the others, and another
// second later it kills them.
class SimLauncher final : public Actor {
 public:
  enum class Life { kRuns, kEndedWell, kEndedBadly };
  struct Job {
    int ranks = 0;
    std::function<Life(int rank)> life;
    std::function<void(int rank)> clean_up;  // once, when its process has ended
    std::function<void(int rank)> terminate;
    std::function<void(int rank)> kill;
  };

  explicit SimLauncher(Job job) : job_(std::move(job)), cleaned_(job_.ranks) {}

  void receive(Context&, Envelope&) override {}
  std::optional<TimePoint> idle(Context& context) override;

 private:
  void look(Context& context);
  template <class Action>
  void to_those_that_run(const Action& action);

  Job job_;
  std::vector<bool> cleaned_;
  std::optional<TimePoint> terminate_at_, kill_at_;
};

}  // namespace tutti
