#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/rank.h"
#include "runtime/recorder.h"
#include "tests/runtime/scratch.h"

namespace tutti {

// A rank alone in its world whose model only sleeps in its forward pass: the step's length shows the time of
// all other work.
struct SleepingWorld {
  Nanoseconds forward = std::chrono::milliseconds(20);
  Nanoseconds loading{0};     // a batch
  Nanoseconds writing{0};     // a checkpoint file
  Nanoseconds publishing{0};  // a checkpoint that is written
  int poisoned_step = -1;     // whose loss is not a number
  int steep_step = -1;        // whose gradient is infinite, and its loss is not
  int steps = 30;
  int checkpoint_every = 0;  // steps; 0 = never

  struct Figures {
    std::vector<double> step_ms;  // between commits, in order
    int most_unpublished = 0;     // checkpoints begun and not published, at any one time
  };

  // Runs it under the ThreadScheduler.
  Figures run() const;
  std::vector<double> step_ms() const { return run().step_ms; }
};

double median(std::vector<double> values);

// The recipe resolved.
Setting recipe_of(const std::string& toml);

}  // namespace tutti
