#include "models/torch/written_tensors.h"

#include "runtime/error.h"

namespace tutti {

WrittenTensors::WrittenTensors(const Layer& layer) : layers_{&layer} {
  for (const Layer* const one : layer.reads()) layers_.push_back(one);
  before_ = versions();
}

std::vector<int64_t> WrittenTensors::versions() const {
  std::vector<int64_t> found;
  const auto add = [&](const at::Tensor& tensor) {
    found.push_back(tensor.is_inference() ? 0 : static_cast<int64_t>(tensor._version()));
  };
  for (const Layer* const layer : layers_) {
    for (const auto& one : layer->own_buffers()) add(one->tensor);
    for (const auto& one : layer->own_parameters()) add(one->tensor);
  }
  return found;
}

void WrittenTensors::require_none() const {
  const auto after = versions();
  std::size_t i = 0;
  const auto is_written = [&] {
    const std::size_t place = i++;
    return after[place] != before_[place];
  };
  for (const Layer* const layer : layers_) {
    for (const auto& one : layer->own_buffers())
      if (is_written()) refuse_written_buffer(one->name);
    for (const auto& one : layer->own_parameters())
      if (is_written())
        throw UserError("forward writes the parameter '" + one->name + "', which only the optimizer may");
  }
}

void refuse_written_buffer(const std::string& name) {
  throw UserError("forward writes the buffer '" + name +
                  "'; but for the statistics of batch norm it may write no buffer, since a step may be made "
                  "again");
}

}  // namespace tutti
