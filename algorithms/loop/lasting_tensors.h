#pragma once

#include <string>
#include <utility>
#include <vector>

#include "training/engine/algorithm.h"
#include "training/state.h"

namespace tutti {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// The result of training: this rank's pieces of all parameters, then the saved buffers. The tensors are the
// model's own, detached.
NamedTensors lasting_tensors(const State& state);
NamedTensors copies_of(const NamedTensors& named);
std::vector<at::Tensor> tensors_of(const NamedTensors& named);
void copy_tensors(const NamedTensors& to, const NamedTensors& from);  // equal lengths and shapes

// True if the run has reached `moment`, a time in any unit. A fraction of the training (dur) counts in
// max_duration's unit, as State::elapsed_duration.
bool has_passed(const Time& moment, const State& state);

// Warns on rank 0 that the algorithm has no effect if its option `key`, `start`, lies after the last `update`
// (BATCH_END or EPOCH_END) of a training in epochs or batches.
void warn_of_late_start(const Algorithm& algorithm, const std::string& key, const Time& start, Event update,
                        const State& state);

}  // namespace tutti
