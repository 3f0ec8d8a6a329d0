#include "tests/device/clock.h"

#include <algorithm>

namespace tutti::test_device {

uint64_t Clock::at(int stream) const {
  const auto index = static_cast<std::size_t>(stream);
  return index < kernels_.size() ? kernels_[index] : 0;
}

void Clock::set(int stream, uint64_t kernel) {
  const auto index = static_cast<std::size_t>(stream);
  if (kernels_.size() <= index) kernels_.resize(index + 1);
  kernels_[index] = kernel;
}

void Clock::join(const Clock& other) {
  if (kernels_.size() < other.kernels_.size()) kernels_.resize(other.kernels_.size());
  for (std::size_t i = 0; i < other.kernels_.size(); ++i)
    kernels_[i] = std::max(kernels_[i], other.kernels_[i]);
}

bool Clock::covers(const Clock& other) const {
  for (int stream = 0; stream < other.streams(); ++stream)
    if (at(stream) < other.at(stream)) return false;
  return true;
}

}  // namespace tutti::test_device
