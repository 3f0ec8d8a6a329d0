#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

#include "tensors/device.h"
#include "tensors/tree.h"

namespace tutti {

// Numbers that kernels of a device compute and the host needs: read together, with one wait. Numbers of the
// CPU are used at once.
class LateNumbers {
 public:
  using Use = std::function<void(std::span<const double> numbers)>;

  // `use` gets the tensor's numbers as float64: now for a CPU tensor, else by `read`.
  void add(const at::Tensor& numbers, Use use);
  // Launches the copy of all numbers to the host. Allocates memory of the device.
  void launch();
  // Waits for the launched copy, else launches the copy, and calls each `use` in the order of `add`. Does not
  // wait for work launched after the copy.
  void read();
  // Forgets them.
  void drop() { *this = {}; }

 private:
  struct Waiting {
    at::Tensor numbers;
    Use use;
  };
  std::vector<Waiting> waiting_;
  at::Tensor host_;  // all of them
  StreamOrder copied_;
};

// The tensors of the host from which a batch was copied to a device. The host asks these tensors about the
// batch (how many targets count), and waits for no kernel.
class HostCopies {
 public:
  HostCopies() = default;
  // The two have the same arrays.
  HostCopies(const Batch& on_device, const Batch& on_host);

  // `batch` with the host's numbers, if all its arrays are arrays of the batch on the device, or parts of
  // such arrays; else the given `batch`.
  Batch of(const Batch& batch) const;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;  // on the device, on the host
};

}  // namespace tutti
