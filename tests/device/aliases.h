#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

namespace tutti::test_device {

bool on_device(const at::Tensor& tensor);

// The front's bytes from the first to the last element; {nullptr, nullptr} if there is none.
struct Extent {
  const char* begin = nullptr;
  const char* end = nullptr;
};
Extent extent(const at::Tensor& tensor);

// CPU tensors over the memory of device tensors, without copies, for one kernel. A tensor has one alias, and
// tensors of one storage have aliases of one storage. An alias does not keep the device tensor's memory.
class Aliases {
 public:
  at::Tensor of(const at::Tensor& tensor);

  // A result of the kernel as a tensor of `device`: the tensor that it is the alias of, a view of an
  // argument, or a new tensor that takes over the memory.
  at::Tensor back(const at::Tensor& result, int device);

  // Kernels may give an `out` another size: the tensors follow their aliases.
  void follow_resized(int device);

  // For a kernel that runs when the tensors may be gone: giving an `out` more memory is an error.
  void keep_sizes();

 private:
  std::unordered_map<c10::TensorImpl*, at::Tensor> aliases_;    // by device tensor
  std::unordered_map<c10::TensorImpl*, at::Tensor> originals_;  // by alias
  std::unordered_map<c10::StorageImpl*, c10::Storage> alias_storages_;
  std::unordered_map<c10::StorageImpl*, c10::Storage> original_storages_;  // by storage of an alias
  std::unordered_map<c10::StorageImpl*, c10::Storage> adopted_;            // by storage of a result
};

}  // namespace tutti::test_device
