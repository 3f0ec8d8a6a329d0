#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <vector>

#include "io/exported/program.h"
#include "models/layers/layer.h"
#include "tensors/device.h"

// What a part of an exported program does, in order. The values of a part have numbers, from 0.
namespace tutti::exported {

using Values = std::vector<c10::IValue>;

// A run of a part.
struct Run {
  const Layer& layer;  // whose parameters, buffers and slots the part has
  Values values;
  Device device = {};
};

// Where a step finds an argument.
struct Source {
  enum class Kind { kConstant, kValue, kParameter, kBuffer, kList, kDevice };
  Kind kind = Kind::kConstant;
  c10::IValue constant = {};
  std::size_t place = 0;  // of the value, or among the layer's own parameters or buffers
  std::vector<Source> items = {};

  c10::IValue in(const Run& run) const;
};

class Step {
 public:
  virtual ~Step() = default;
  virtual void run(Run& run) const = 0;

  std::vector<std::size_t> last_uses;  // values that nobody uses after the step
};
using Steps = std::vector<std::unique_ptr<Step>>;

void run_steps(const Steps& steps, Run& run);

// " in 'block.norm'", for errors; "" for the whole.
std::string module_of(const Node& node);

// Makes the step of a node: an operator of libtorch's, or a function of Python's on numbers. Null: the node
// only checks numbers. `results`: places of the node's outputs. Throws UserError with the names of the
// operator and its module.
std::unique_ptr<Step> make_step(const Node& node, const std::vector<Source>& inputs,
                                std::vector<std::size_t> results);

// Calls a slot of the layer.
std::unique_ptr<Step> make_call(std::size_t slot, std::vector<Source> inputs,
                                std::vector<std::size_t> results, std::vector<bool> numbers);

// Steps under another mode of libtorch, into which inputs are copied: higher_order.wrap_with_set_grad_enabled
// and wrap_with_autocast.
struct Mode {
  bool autocast = false;  // else: of gradients
  bool enabled = true;
  at::ScalarType dtype = at::kFloat;
};
std::unique_ptr<Step> make_modal(const Mode& mode, Steps steps);
// Of values that have two names.
std::unique_ptr<Step> make_copies(std::vector<Source> from, std::vector<std::size_t> to);

// Values as the input or output of a layer: a number is a scalar of the host.
TensorTree packed(const Values& values);
Values unpacked(const TensorTree& tree, const std::vector<bool>& numbers);

}  // namespace tutti::exported
