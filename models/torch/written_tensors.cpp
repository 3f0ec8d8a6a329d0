#include "models/torch/written_tensors.h"

#include "runtime/error.h"

namespace tutti {

WrittenTensors::WrittenTensors(const Layer& layer) : layers_{&layer} {
  for (const Layer* const owner : layer.reads()) layers_.push_back(owner);
  before_ = versions();
}

std::vector<int64_t> WrittenTensors::versions() const {
  std::vector<int64_t> versions;
  const auto add = [&](const at::Tensor& tensor) {
    versions.push_back(tensor.is_inference() ? 0 : static_cast<int64_t>(tensor._version()));
  };
  for (const Layer* const layer : layers_) {
    for (const auto& buffer : layer->own_buffers()) add(buffer->tensor);
    for (const auto& parameter : layer->own_parameters()) add(parameter->tensor);
  }
  return versions;
}

void WrittenTensors::require_none() const {
  const auto after = versions();
  std::size_t i = 0;
  const auto is_written = [&] {
    const std::size_t place = i++;
    return after[place] != before_[place];
  };
  for (const Layer* const layer : layers_) {
    for (const auto& buffer : layer->own_buffers())
      if (is_written()) refuse_written_buffer(buffer->name);
    for (const auto& parameter : layer->own_parameters())
      if (is_written())
        throw UserError("forward writes the parameter '" + parameter->name +
                        "', which only the optimizer may");
  }
}

void refuse_written_buffer(const std::string& name) {
  throw UserError("forward writes the buffer '" + name +
                  "'; but for the statistics of batch norm it may write no buffer, since a step may be made "
                  "again");
}

}  // namespace tutti
