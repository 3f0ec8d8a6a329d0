#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/actor/actor.h"

namespace tutti {

// Acts like mpirun: a second after the process of a rank failed it sends SIGTERM to the others, and another
// second later it kills them.
class SimLauncher final : public Actor {
 public:
  enum class ProcessState { kRunning, kSucceeded, kFailed };
  struct Job {
    int ranks = 0;
    std::function<ProcessState(int rank)> state;
    std::function<void(int rank)> clean_up;  // called once, when the process has ended
    std::function<void(int rank)> terminate;
    std::function<void(int rank)> kill;
  };

  explicit SimLauncher(Job job) : job_(std::move(job)), cleaned_(job_.ranks) {}

  void receive(Context&, Envelope&) override {}
  std::optional<TimePoint> idle(Context& context) override;

 private:
  void check_processes(Context& context);
  template <class Action>
  void for_each_running(const Action& action);

  Job job_;
  std::vector<bool> cleaned_;
  std::optional<TimePoint> terminate_at_, kill_at_;
};

}  // namespace tutti
