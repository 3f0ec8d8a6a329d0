#include "actors/compute/program_tasks.h"

#include <algorithm>

#include "tensors/memory/out_of_memory.h"

namespace tutti {

ProgramTasks::ProgramTasks(const Job& job, State& state, Engine& engine, const Evaluations& evaluations,
                           Timetable& times, Recorder& recorder)
    : job_(job),
      training_(state),
      engine_(engine),
      evaluations_(evaluations),
      times_(times),
      recorder_(recorder) {
  state_.after = state.max_duration.text();
}

ProgramTasks::Result ProgramTasks::run(Context& context, const Evaluate& evaluate) {
  while (!done()) {
    const Task& task = job_.tasks[state_.done];
    if (task.kind == Task::Kind::kEvaluate && !evaluate(evaluations_.labels_of(task.label)))
      return Result::kStopped;
    if (task.kind == Task::Kind::kPredict) predict_alone(context, task);
    ++state_.done;
    if (task.kind != Task::Kind::kFit) continue;
    const Time duration = Time::parse(task.duration);
    training_.max_duration = training_.timestamp.get(duration.unit()) + duration;
    state_.until = training_.max_duration.text();
    return Result::kTrainsOn;
  }
  return Result::kAllDone;
}

void ProgramTasks::predict_alone(Context& context, const Task& task) {
  if (training_.topology.rank != 0 && training_.topology.share.pieces == 1) return;
  recorder_.record({context.now(), TraceKind::kPredicts, training_.timestamp.batch});
  const TimePoint began = context.now();
  for (const auto& evaluator : evaluations_.evaluators())
    if (evaluator.label == task.label)
      guard_memory("prediction", [&] { predict(training_, engine_, evaluator, task.on_outputs); });
  times_.exclude(recorder_.input(RecordedInput::kPredictionSeconds, seconds(context.now() - began)));
}

void ProgramTasks::restore(const TasksState& saved) {
  if (saved.after != state_.after) return;
  state_ = saved;
  state_.done = std::max(state_.done, job_.tasks_done);
  if (!state_.until.empty()) training_.max_duration = Time::parse(state_.until);
}

}  // namespace tutti
