#pragma once

#include <cstdint>
#include <vector>

namespace tutti::test_device {

// A vector clock: by stream, the last kernel that is known to be over, counted from 1. Streams are numbered
// over all devices.
class Clock {
 public:
  uint64_t at(int stream) const;
  void set(int stream, uint64_t kernel);

  void join(const Clock& other);

  // True if all kernels that are over by `other` are over by this clock.
  bool covers(const Clock& other) const;

  int streams() const { return static_cast<int>(kernels_.size()); }

 private:
  std::vector<uint64_t> kernels_;
};

}  // namespace tutti::test_device
