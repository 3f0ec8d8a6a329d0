#include "models/torch/written_tensors.h"

#include "runtime/error.h"

namespace tutti {
namespace {

int64_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : static_cast<int64_t>(tensor._version());
}

}  // namespace

WrittenTensors::WrittenTensors(const Layer& layer) {
  const auto watch_all = [this](const Layer& owner) {
    for (const auto& buffer : owner.own_buffers()) watch(buffer->name, buffer->tensor, false);
    for (const auto& parameter : owner.own_parameters()) watch(parameter->name, parameter->tensor, true);
  };
  watch_all(layer);
  for (const Layer* const owner : layer.reads()) watch_all(*owner);
}

void WrittenTensors::watch(const std::string& name, const at::Tensor& tensor, bool is_parameter) {
  watched_.push_back({&name, &tensor, is_parameter, version_of(tensor)});
}

void WrittenTensors::require_none() const {
  for (const auto& [name, tensor, is_parameter, version] : watched_) {
    if (version_of(*tensor) == version) continue;
    if (!is_parameter) refuse_written_buffer(*name);
    throw UserError("forward writes the parameter '" + *name + "', which only the optimizer may");
  }
}

void refuse_written_buffer(const std::string& name) {
  throw UserError("forward writes the buffer '" + name +
                  "'; but for the statistics of batch norm it may write no buffer, since a step may be made "
                  "again");
}

}  // namespace tutti
