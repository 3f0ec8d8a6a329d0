#include "training/callbacks/writers/weights_file.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <filesystem>
#include <map>
#include <optional>

#include "io/formats/safetensors.h"
#include "runtime/error.h"
#include "training/callbacks/writers/file_names.h"
#include "training/state.h"

namespace tutti {

namespace {

// A rank has its rows alone of what inference uses: they go into the model to be gathered.
void exchange_views(const State& state) {
  const at::NoGradGuard no_grad;
  for (const ParamView& view : state.views)
    if (const auto inference_tensor = state.inference_tensors.find(view.name);
        inference_tensor != state.inference_tensors.end()) {
      const at::Tensor trained = view.tensor.clone();
      at::Tensor(view.tensor).copy_(inference_tensor->second);
      at::Tensor(inference_tensor->second).copy_(trained);
    }
}

// Writes under another name first, so that readers never see a partial file. Parameters are written as they
// are visited; sharded ones have the values for inference in their views.
void write_whole(const State& state, Disk& disk, const std::string& name,
                 std::optional<at::ScalarType> precision, const NameInFile& name_in_file) {
  const bool sharded = state.topology.share.pieces > 1;
  const auto in_file = [&](const std::string& one) { return name_in_file ? name_in_file(one) : one; };
  std::map<std::string, at::Tensor> others = state.inference_tensors;
  for (const auto& named : state.buffers) others.emplace(named.name, named.buffer->tensor);
  std::erase_if(others, [&](const auto& one) { return in_file(one.first).empty(); });
  const auto stored = [&](const at::Tensor& tensor) {
    const bool is_cast = precision && tensor.is_floating_point();
    return is_cast ? tensor.to(*precision) : tensor;
  };
  Safetensors layout{{}, {{"format", "pt"}}};
  for (auto& [tensor_name, tensor] : others) layout.tensors[in_file(tensor_name)] = tensor = stored(tensor);
  for (std::size_t p = 0; p < state.parameters.size(); ++p) {
    const NamedParameter& named = state.parameters[p];
    if ((!sharded && others.count(named.name) > 0) || in_file(named.name).empty()) continue;
    others.erase(named.name);
    const at::Tensor& like = sharded ? state.views[p].tensor : named.parameter->tensor;
    layout.tensors[in_file(named.name)] =
        at::empty(named.parameter->tensor.sizes(),
                  at::TensorOptions(at::kMeta).dtype(precision ? *precision : like.scalar_type()));
  }

  std::optional<SafetensorsFile> file;  // none after an error
  const auto attempt = [&](const auto& write) {
    try {
      write();
    } catch (const OperatingError& error) {
      file.reset();
      warn_unwritten(error.what());
    }
  };
  const std::filesystem::path path(name);
  const std::string fresh = path.string() + ".new";
  if (state.topology.rank == 0)
    attempt([&] {
      if (!disk.replaceable(path)) throw OperatingError(path.string() + ": not a regular file");
      disk.make_folders(path.parent_path());
      file.emplace(disk, fresh, layout);
      for (const auto& [name, tensor] : others) file->put(in_file(name), tensor);
    });
  state.visit_parameters(state.topology.rank == 0, [&](std::size_t p) {
    const NamedParameter& named = state.parameters[p];
    if (file && others.count(named.name) == 0 && !in_file(named.name).empty())
      attempt([&] { file->put(in_file(named.name), stored(named.parameter->tensor)); });
  });
  if (!file) return;
  attempt([&] {
    file->finish();
    disk.rename(fresh, path);
  });
}

}  // namespace

void write_weights_file(const State& state, Disk& disk, const std::string& path,
                        std::optional<at::ScalarType> precision, const NameInFile& name_in_file) {
  const bool sharded = state.topology.share.pieces > 1;
  if (sharded) exchange_views(state);
  write_whole(state, disk, path, precision, name_in_file);
  if (sharded) exchange_views(state);
}

}  // namespace tutti
