#pragma once

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

}  // namespace tutti
