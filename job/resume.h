#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "job/checkpoint_options.h"
#include "recipe/setting.h"
#include "training/engine/engine.h"
#include "training/trainee.h"

namespace tutti {

struct State;

// What must be the same for a run to go on at the bits that it would have come to.
struct ResumeOptions {
  uint64_t seed = 0;
  int64_t global_batch = 0;
  uint64_t data_digest = 0;
  Setting recipe;  // its [data.train] shuffle, drop_last and sampling count, and [model] but for dropout
};

// Copies a checkpoint into the trainee, as far as `load` asks, and gives the state of its run: of weights
// alone that of a run which begins. Throws UserError that names the folder and what differs: seed, batch,
// data or tensors. `tell` hears what is passed over.
RunState resume(Trainee& trainee, const Checkpoint& checkpoint, const ResumeOptions& options,
                const LoadOptions& load = {}, const std::function<void(const std::string&)>& tell = {});

// What algorithms and callbacks know: their tensors become the trainee's, for what saves or restores it; the
// rest is given to them.
void add_listeners_tensors(Trainee& trainee, const Engine& engine);
void restore_listeners(const Engine& engine, const RunState& saved);

// Where a run's training stood, and what is known of its last step: time, loss, flops, learning rate. Of the
// moment before that step come the totals alone; what was not finite comes as 0.
void restore_time(State& state, const RunState& saved);
void put_time(const State& state, RunState& to);

}  // namespace tutti
