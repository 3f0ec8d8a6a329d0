#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "job/job.h"
#include "runtime/log.h"
#include "training/engine/engine.h"
#include "training/state.h"
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

// Copy between a checkpoint and a part of the run: a value, or an object with state() and restore(). Save
// leaves out numbers that are not finite, which JSON lacks.
struct Save {
  template <typename Saved, typename Part, typename... With>
  void operator()(Saved& to, const Part& part, const With&...) const {
    if constexpr (requires { part.state(); })
      to = part.state();
    else if constexpr (std::is_floating_point_v<Part>)
      to = std::isfinite(part) ? part : to;
    else
      to = part;
  }
};
struct Restore {
  template <typename Saved, typename Part, typename... With>
  void operator()(const Saved& from, Part& part, const With&... with) const {
    if constexpr (requires { part.restore(from, with...); })
      part.restore(from, with...);
    else
      part = from;
  }
};

// The time and the results of the last step: loss, flops, learning rate. `copy`: Save or Restore.
template <typename Copy, typename Saved>
void copy_time(const Copy& copy, Saved& saved, State& state) {
  copy(saved.time, state.timestamp);
  copy(saved.last_step.before, state.before_batch);
  copy(saved.last_step.loss, state.train_loss);
  copy(saved.last_step.flops, state.flops);
  if (!state.optimizer) return;
  double lr = state.optimizer->lr();
  copy(saved.last_step.lr, lr);
  if (lr >= 0) state.optimizer->set_lr(lr);
}

}  // namespace tutti
