#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "tensors/tree.h"

namespace tutti::script {

// Values of TorchScript as inputs and outputs of layers: a tensor alone is a leaf. Others are their tensors,
// and the number of a structure in which they stand, with all that is no tensor. Structures are kept until
// many others have been made.
class Packing {
 public:
  TensorTree pack(const std::vector<c10::IValue>& values);
  std::vector<c10::IValue> unpack(const TensorTree& tree) const;

 private:
  struct Structure {
    c10::IValue plain;                  // without tensors
    c10::TypePtr type = nullptr;        // else of a list, tuple or dict
    bool is_tensor = false;             // else; the next of the tensors
    std::vector<Structure> items = {};  // of a dict: key, value, ...
  };
  using Tensors = std::vector<at::Tensor>;
  static Structure structure_of(const c10::IValue& value, Tensors& tensors);
  static c10::IValue value_of(const Structure& structure, Tensors::const_iterator& next);

  std::vector<std::vector<Structure>> structures_;
  std::size_t made_ = 0;
  mutable std::mutex mutex_;  // autograd calls layers again on its own thread
};

}  // namespace tutti::script
