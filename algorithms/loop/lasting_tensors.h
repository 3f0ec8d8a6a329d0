#pragma once

#include <string>
#include <utility>
#include <vector>

#include "training/state.h"

namespace tutti {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// What training leaves: this rank's pieces of all parameters, then the buffers that are saved. The tensors
// are the model's own, detached.
NamedTensors lasting_tensors(const State& state);
NamedTensors copies_of(const NamedTensors& named);
std::vector<at::Tensor> tensors_of(const NamedTensors& named);
void copy_tensors(const NamedTensors& to, const NamedTensors& from);  // equal lengths and shapes

// True if the run has come to `moment`, a time of any unit: a fraction of the training (dur) counts in
// max_duration's unit, as State::elapsed_duration.
bool has_passed(const Time& moment, const State& state);

}  // namespace tutti
