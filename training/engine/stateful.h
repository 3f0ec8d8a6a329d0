#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace tutti {

// What a checkpoint holds of an algorithm, a callback or a metric. Default: nothing.
class Stateful {
 public:
  using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

  virtual ~Stateful() = default;

  // Small state as JSON ("" = none), and what takes it back. `restore` throws UserError where it does not
  // fit.
  virtual std::string state() const { return ""; }
  virtual void restore(const std::string&) {}

  // Tensors at one address for their whole life: a checkpoint reads them, a restore writes into them. The
  // same on every rank.
  virtual NamedTensors state_tensors() { return {}; }
};

}  // namespace tutti
