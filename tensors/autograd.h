#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <optional>

namespace tutti {

// While it lives, this thread computes in `dtype` (bfloat16 or float16) what libtorch's autocast holds fit
// for it on the CPU, and in float32 what it does not; nothing: every operation computes in what it is given.
//
// libtorch's cache of cast weights is one for the whole process, and ranks that share it would find each
// other's weights there: it stays off, and a weight is cast where it is used.
class AutocastScope {
 public:
  explicit AutocastScope(std::optional<at::ScalarType> dtype);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  bool enabled_, cached_;
  at::ScalarType dtype_;
};

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
