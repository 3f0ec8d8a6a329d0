#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "job/job.h"
#include "runtime/log.h"
#include "training/engine/engine.h"
#include "training/trainee.h"

namespace tutti {

// Restores the trainee from a checkpoint on the disk, as `load` allows, and returns the state of the saved
// run; with weights only, the state of a fresh run. Throws UserError with the folder and the difference:
// seed, batch, data, [data.train] shuffle, drop_last or sampling, [model] but for dropout, or tensors. `warn`
// is called for each ignored name.
RunState resume(Trainee& trainee, const Disk& disk, const Checkpoint& checkpoint, const Job& job,
                const LoadOptions& load = {}, const Warn& warn = {});

// Adds the tensors of algorithms and callbacks to the trainee, for saving and restoring.
void add_listener_tensors(Trainee& trainee, const Engine& engine);
// Restores the other state of algorithms and callbacks.
void restore_listeners(const Engine& engine, const RunState& saved);

// Restores or saves the time and the results of the last step: loss, flops, learning rate. Of the time before
// the last step only totals are saved. Numbers that are not finite are saved as 0.
void restore_time(State& state, const RunState& saved);
void save_time(const State& state, RunState& to);

}  // namespace tutti
