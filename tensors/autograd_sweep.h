#pragma once

#include <ATen/core/Tensor.h>

namespace tutti {

// Gives back what a backward that was thrown out of has left behind. Autograd keeps its queue of work, and
// the gradients in it, with the thread, and lets go of what is stale only as a later backward comes by it:
// one whose own work is older than the queue's, so that all of that is taken before.
class AutogradSweep {
 public:
  // On the thread whose backwards are swept, before them.
  AutogradSweep();
  void run();

 private:
  at::Tensor leaf_, root_;
};

}  // namespace tutti
