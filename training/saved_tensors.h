#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "io/checkpoint/tensor_source.h"
#include "tensors/placement.h"

namespace tutti {

struct Trainee;

// A tensor of a trainee, under its name in checkpoints.
struct SavedTensor {
  std::string name;       // "model/3.conv.weight"
  std::string before;     // its name before surgery: "model/3.weight"; "" if surgery added it
  at::Tensor tensor;      // the part of this rank
  Shape shape;            // of the whole
  Placement placement;    // of the whole on the ranks
  TensorRegion region;    // of `tensor` in the whole
  bool constant = false;  // not read: the layer computes this buffer's values

  std::string text() const;  // with both names, for messages
};

// All tensors that a checkpoint saves: parameters, buffers, optimizer state, tensors of listeners.
std::vector<SavedTensor> saved_tensors(const Trainee& trainee);
// Parameters and buffers, without "model/".
std::vector<SavedTensor> weights_of(const Trainee& trainee);

// Names before surgery of parameters and buffers that have another name now.
std::map<std::string, std::string> names_before_surgery(const Trainee& trainee);

// Finds tensors of a file by their names after or before surgery.
class SavedNames {
 public:
  explicit SavedNames(const std::vector<SavedTensor>& all);

  // The tensor's name in the file: its name, or else its name before surgery, unless another tensor now has
  // that name. "" if the file has neither. Throws UserError if the file has both.
  std::string find(const TensorSource& tensors, const SavedTensor& saved, const std::string& file) const;

 private:
  std::set<std::string> names_;
};

}  // namespace tutti
