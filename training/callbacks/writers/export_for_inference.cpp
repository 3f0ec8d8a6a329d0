#include "training/callbacks/writers/export_for_inference.h"

#include <filesystem>

#include "io/formats/safetensors.h"
#include "runtime/error.h"
#include "training/callbacks/writers/file_names.h"
#include "training/state.h"

namespace tutti {

// Writes under another name first, so that readers never see a partial file.
void ExportForInference::write(const State& state) {
  if (state.rank != 0) return;
  Safetensors content;
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
