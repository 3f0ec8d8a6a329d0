#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/world.h"
#include "runtime/recorder.h"
#include "tests/runtime/folder.h"

namespace tutti {

// A rank alone in its world whose model does nothing but sleep in its forward pass: what else takes time can
// be told from the step's length.
struct SleepingWorld {
  Nanoseconds forward = std::chrono::milliseconds(20);
  Nanoseconds loading{0};  // a batch
  Nanoseconds writing{0};  // a checkpoint file
  int poisoned_step = -1;  // whose loss is not a number
  int steps = 30;
  int checkpoint_every = 0;  // steps; 0 = never

  // Runs it under the ThreadScheduler; gives the time between commits, in ms, in order.
  std::vector<double> step_ms() const;
};

double median(std::vector<double> values);

// The recipe resolved.
Setting recipe_of(const std::string& toml);

}  // namespace tutti
