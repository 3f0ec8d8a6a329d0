#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/layer.h"

namespace tutti {

// Watches parameters and buffers while a layer's code runs. Code may write none but the statistics of batch
// norm, which leave it in another way, since a step may be made again.
class WrittenTensors {
 public:
  WrittenTensors() = default;
  // Watches the tensors of a layer, and of the layers whose tensors it reads.
  explicit WrittenTensors(const Layer& layer);
  // The name and the tensor must outlive the object.
  void watch_buffer(const std::string& name, const at::Tensor& tensor) { watch(name, tensor, false); }
  // Throws UserError for the first tensor that has been written since.
  void require_none() const;

 private:
  struct Watched {
    const std::string* name;
    const at::Tensor* tensor;
    bool is_parameter;
    int64_t version;
  };
  void watch(const std::string& name, const at::Tensor& tensor, bool is_parameter);

  std::vector<Watched> watched_;
};

// Throws UserError.
[[noreturn]] void refuse_written_buffer(const std::string& name);

}  // namespace tutti
