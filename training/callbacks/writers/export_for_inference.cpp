#include "training/callbacks/writers/export_for_inference.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <filesystem>
#include <map>
#include <optional>

#include "io/formats/safetensors.h"
#include "runtime/error.h"
#include "training/callbacks/factory.h"
#include "training/callbacks/options.h"
#include "training/callbacks/writers/file_names.h"
#include "training/state.h"

namespace tutti {

void ExportForInference::write(const State& state) {
  const bool sharded = state.topology.share.pieces > 1;
  if (sharded) exchange_views(state);
  write_whole(state);
  if (sharded) exchange_views(state);
}

// A rank has its rows alone of what inference uses: they go into the model to be gathered.
void ExportForInference::exchange_views(const State& state) {
  const at::NoGradGuard no_grad;
  for (const ParamView& view : state.views)
    if (const auto found = state.inference_tensors.find(view.name); found != state.inference_tensors.end()) {
      const at::Tensor trained = view.tensor.clone();
      at::Tensor(view.tensor).copy_(found->second);
      at::Tensor(found->second).copy_(trained);
    }
}

// Writes under another name first, so that readers never see a partial file. Parameters are written as they
// are visited; sharded ones have the values for inference in their views.
void ExportForInference::write_whole(const State& state) {
  const bool sharded = state.topology.share.pieces > 1;
  std::map<std::string, at::Tensor> others = state.inference_tensors;
  for (const auto& one : state.buffers) others.emplace(one.name, one.buffer->tensor);
  Safetensors layout{others, {{"format", "pt"}}};
  for (std::size_t p = 0; p < state.parameters.size(); ++p) {
    const NamedParameter& one = state.parameters[p];
    if (!sharded && others.count(one.name) > 0) continue;
    others.erase(one.name);
    const at::Tensor& like = sharded ? state.views[p].tensor : one.parameter->tensor;
    layout.tensors[one.name] =
        at::empty(one.parameter->tensor.sizes(), at::TensorOptions(at::kMeta).dtype(like.dtype()));
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
  const std::filesystem::path path(file_name(state, save_path_));
  const std::string fresh = path.string() + ".new";
  if (state.topology.rank == 0)
    attempt([&] {
      if (!disk_.replaceable(path)) throw OperatingError(path.string() + ": not a regular file");
      disk_.make_folders(path.parent_path());
      file.emplace(disk_, fresh, layout);
      for (const auto& [name, tensor] : others) file->put(name, tensor);
    });
  state.visit_parameters(state.topology.rank == 0, [&](std::size_t p) {
    const NamedParameter& one = state.parameters[p];
    if (file && others.count(one.name) == 0) attempt([&] { file->put(one.name, one.parameter->tensor); });
  });
  if (!file) return;
  attempt([&] {
    file->finish();
    disk_.rename(fresh, path);
  });
}

CallbackPtr ExportForInferenceOptions::make(const Setting&, const CallbackEnvironment& environment) const {
  return std::make_shared<ExportForInference>(environment.disk, save_path, interval);
}

}  // namespace tutti
