#include "training/callbacks/writers/export_for_inference.h"

#include <ATen/core/grad_mode.h>

#include <filesystem>

#include "io/formats/safetensors.h"
#include "runtime/error.h"
#include "training/callbacks/writers/file_names.h"
#include "training/state.h"

namespace tutti {

// Writes under another name first, so that readers never see a partial file.
void ExportForInference::write(const State& state) {
  const bool sharded = state.share.pieces > 1;
  if (sharded) exchange_views(state);
  state.with_model(state.rank == 0, [&] { write_whole(state); });
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

void ExportForInference::write_whole(const State& state) {
  Safetensors content;
  if (state.share.pieces > 1)
    for (const auto& one : state.parameters) content.tensors[one.name] = one.parameter->tensor.detach();
  content.tensors.insert(state.inference_tensors.begin(), state.inference_tensors.end());
  for (const auto& one : state.parameters) content.tensors.emplace(one.name, one.parameter->tensor.detach());
  for (const auto& one : state.buffers) content.tensors.emplace(one.name, one.buffer->tensor);
  content.metadata = {{"format", "pt"}};
  warn_if_unwritten([&] {
    const std::filesystem::path path(file_name(state, save_path_));
    if (!disk_.replaceable(path)) throw OperatingError(path.string() + ": not a regular file");
    disk_.make_folders(path.parent_path());
    const std::string fresh = path.string() + ".new";
    write_safetensors(disk_, fresh, content);
    disk_.rename(fresh, path);
  });
}

}  // namespace tutti
