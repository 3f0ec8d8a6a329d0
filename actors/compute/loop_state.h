#pragma once

#include <optional>
#include <string>

#include "actors/compute/program_tasks.h"
#include "actors/compute/snapshots.h"
#include "actors/compute/timetable.h"
#include "actors/compute/train_step.h"
#include "actors/logging/run_log.h"
#include "io/checkpoint/run_state.h"

namespace tutti {

// Where a training loop stands, beside the tensors: saved in checkpoints, and restored from them.
class LoopState {
 public:
  // All must outlive this.
  LoopState(const TrainStep::Parts& with, TrainStep& train_step, Evaluations& evaluations);

  // When FIT_START is over: a later change of max_duration is saved.
  void fit_began() { begun_duration_ = with_.state.max_duration.text(); }
  // max_duration of the checkpoint, if changed after FIT_START; else "".
  const std::string& changed_duration() const { return changed_duration_; }

  // `folder`: of the checkpoint. Throws UserError if an epoch has too few batches.
  void restore(RunState saved, const std::string& folder);
  RunState save();

  // Where the resumed loop continues. Nothing of the saved step is pending if max_duration is longer than it
  // was.
  ResumePoint::Place resume_place();

  // The loop's to read and to change.
  ResumePoint pending;  // work of the current step, saved if the run stops
  ProgramTasks tasks;
  std::optional<BestValues> best;  // [checkpoint] best
  RunLog::Resumed resumed;         // of a checkpoint, or its weights alone
  double earlier_s = 0;            // training time before this attempt

 private:
  template <typename Copy, typename Saved>
  void copy_parts(const Copy& copy, Saved& saved);

  TrainStep::Parts with_;
  TrainStep& train_step_;
  std::string begun_duration_;  // max_duration after FIT_START
  std::string changed_duration_;
};

}  // namespace tutti
