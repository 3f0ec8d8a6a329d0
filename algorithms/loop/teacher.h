#pragma once

#include <string>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "models/layers/layer.h"
#include "tensors/tree.h"
#include "training/trainee.h"

namespace tutti {

struct State;

// The model of a checkpoint, which another run asks and does not train: in evaluation mode, with the averages
// of EMA if there are some, without gradients, whole on this rank, in the run's precision.
class Teacher {
 public:
  // `path`: a checkpoint's or a run's folder. Builds the model for the samples of `run`, on the meta device,
  // with the surgery that its weights need. Throws UserError, with the folder.
  Teacher(const std::string& path, const State& run);

  // The outputs for a batch, before `load`: only their shapes count. Throws UserError.
  Outputs try_forward(const Batch& batch) const { return model_.try_forward(batch); }
  // Reads the weights.
  void load();
  Outputs forward(const Batch& batch) const;

 private:
  Checkpoint checkpoint_;
  RunState saved_;
  Trainee model_;
};

}  // namespace tutti
