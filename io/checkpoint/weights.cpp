#include "io/checkpoint/weights.h"

#include "io/checkpoint/checkpoint.h"
#include "io/formats/safetensors.h"
#include "io/hdf5/hdf5.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// checkpoint.h5 has each parameter under model/ and, as a link, at the root; either may be read.
Tensors from_hdf5(const std::string& path) {
  const Hdf5File file(path);
  bool grouped = false;
  for (const auto& entry : file.datasets()) grouped = grouped || entry.path.starts_with(kModelPrefix);
  Tensors tensors;
  for (const auto& entry : file.datasets()) {
    if (!grouped)
      tensors[entry.path] = file.read(entry.path);
    else if (entry.path.starts_with(kModelPrefix))
      tensors[entry.path.substr(kModelPrefix.size())] = file.read(entry.path);
  }
  return tensors;
}

Tensors from_checkpoint(const std::string& folder) {
  Tensors tensors;
  try {
    for (auto& [name, tensor] : read_checkpoint(PosixDisk(), folder).tensors)
      if (name.starts_with(kModelPrefix)) tensors[name.substr(kModelPrefix.size())] = tensor;
  } catch (const OperatingError& error) {
    throw UserError(error.what());
  }
  return tensors;
}

}  // namespace

Tensors read_weights(const std::string& path) {
  const PosixDisk disk;
  if (disk.exists(path + "/manifest.json")) return from_checkpoint(path);
  if (!disk.exists(path)) throw UserError(path + ": there is no such file with weights");
  if (ends_with(path, ".safetensors")) return read_safetensors(path).tensors;
  if (ends_with(path, ".h5") || ends_with(path, ".hdf5")) return from_hdf5(path);
  throw UserError(path + ": expected weights as .safetensors or .h5, or a checkpoint's folder");
}

}  // namespace tutti
