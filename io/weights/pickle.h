#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>

#include "io/weights/pickle_objects.h"

namespace tutti {

// A pickle of torch.save or torch.jit.save. Runs no code: only the Python objects of these two are known,
// each by a function that makes plain values. Sizes are checked: a tensor lies within its storage.
class Pickle {
 public:
  // Throws UserError with the file, the offset in the pickle, and the Python object, if unknown.
  Pickle(std::span<const std::byte> bytes, const std::string& path,
         const PickledObjects& objects = kObjectsOfStateDicts);

  const PickledValue& root() const { return *root_; }
  const std::deque<PickledValue>& values() const { return values_; }

 private:
  std::deque<PickledValue> values_;  // values may contain each other, and themselves
  const PickledValue* root_ = nullptr;
};

}  // namespace tutti
