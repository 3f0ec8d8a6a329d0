#pragma once

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "recipe/setting.h"

namespace tutti {

struct State;

// The teacher's model: a run's model, or a model with weights of its own.
struct TeacherModel {
  Checkpoint checkpoint;  // of the run; else without a folder
  RunState saved;         // likewise
  Setting section;        // [model], resolved
};

// `teacher`: a table of [model]; or a path, judged by its content, not by its name: a checkpoint's or a run's
// folder, a folder of Hugging Face's, a program of torch.export or TorchScript. Throws UserError, which says
// what the path is, also for a teacher of several labels or of values; and OperatingError.
TeacherModel find_teacher(const Setting& teacher, const State& run);

}  // namespace tutti
