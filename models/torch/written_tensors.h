#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/layer.h"

namespace tutti {

// Watches the parameters and buffers of a layer, and of those whose tensors it reads, while its code runs.
// Code may write none but the statistics of batch norm, which leave it in another way, since a step may be
// made again.
class WrittenTensors {
 public:
  explicit WrittenTensors(const Layer& layer);
  // Throws UserError for what has been written since.
  void require_none() const;

 private:
  std::vector<int64_t> versions() const;

  std::vector<const Layer*> layers_;
  std::vector<int64_t> before_;
};

// Throws UserError.
[[noreturn]] void refuse_written_buffer(const std::string& name);

}  // namespace tutti
