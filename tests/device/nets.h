#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <optional>
#include <vector>

namespace tutti::test_device {

enum class Net { kMlp, kConv, kGpt };

struct Training {
  Net net = Net::kMlp;
  int steps = 3;
  std::optional<c10::ScalarType> autocast;
};

// Trains a small network with fused AdamW on a device, on the calling thread; losses and parameters, on the
// host. Data and initial values depend on nothing else.
std::vector<at::Tensor> train(c10::Device device, const Training& training);

}  // namespace tutti::test_device
