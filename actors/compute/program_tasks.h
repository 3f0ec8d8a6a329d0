#pragma once

#include <functional>

#include "actors/compute/evaluations.h"
#include "actors/compute/timetable.h"
#include "io/checkpoint/run_state.h"
#include "job/job.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"
#include "training/engine/engine.h"
#include "training/state.h"

namespace tutti {

// A program's tasks after the training (job/task.h), and how many tasks are done.
class ProgramTasks {
 public:
  enum class Result { kAllDone, kTrainsOn, kStopped };
  // Runs evaluators; false: the run was asked to stop.
  using Evaluate = std::function<bool(const Evaluations::Labels&)>;

  // All references must outlive the tasks.
  ProgramTasks(const Job& job, State& state, Engine& engine, const Evaluations& evaluations, Timetable& times,
               Recorder& recorder);

  // Runs tasks until the last, or until an evaluation is stopped, or a task trains on with a longer
  // State::max_duration.
  Result run(Context& context, const Evaluate& evaluate);

  bool done() const { return state_.done == std::ssize(job_.tasks); }
  const TasksState& state() const { return state_; }
  // Tasks that followed another max_duration do not count.
  void restore(const TasksState& saved);

 private:
  void predict_alone(Context& context, const Task& task);

  const Job& job_;
  State& training_;
  Engine& engine_;
  const Evaluations& evaluations_;
  Timetable& times_;
  Recorder& recorder_;
  TasksState state_;
};

}  // namespace tutti
