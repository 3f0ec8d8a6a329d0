#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>

#include "io/weights/pickle_objects.h"

namespace tutti {

// Bounds the memory for objects that are made of a pickle: few bytes of a hostile pickle make many objects,
// since an object may be used again and again. Objects of torch.save take less than 128 bytes a byte.
class ObjectMemory {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{2} << 30, kLeastBytes = uint64_t{4} << 20,
                            kBytesAByte = 128;

  explicit ObjectMemory(uint64_t pickle_bytes);
  // True if the object still fits.
  bool take(uint64_t bytes);

 private:
  uint64_t left_;
};
inline constexpr const char* kTooManyObjects = "too many objects, or the same objects in each other";

// A pickle of torch.save or torch.jit.save. Runs no code: only the Python objects of these two are known,
// each by a function that makes plain values. Sizes are checked: a tensor lies within its storage.
class Pickle {
 public:
  // Throws UserError with the file, the offset in the pickle, and the Python object, if unknown.
  Pickle(std::span<const std::byte> bytes, const std::string& path,
         const PickledObjects& objects = kObjectsOfStateDicts);

  const PickledValue& root() const { return *root_; }
  const std::deque<PickledValue>& values() const { return values_; }
  uint64_t bytes() const { return bytes_; }

 private:
  std::deque<PickledValue> values_;  // values may contain each other, and themselves
  const PickledValue* root_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace tutti
