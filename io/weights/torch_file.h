#pragma once

#include <memory>
#include <string>

#include "io/checkpoint/tensor_source.h"
#include "runtime/disk.h"

namespace tutti {

// Opens a state dict that torch.save wrote: a zip archive with a pickle (io/weights/pickle.h) and a record
// for each storage. The state dict may be below "state_dict", "model_state_dict", "model", "module" or
// "state". Tensors may have any strides; values that are no tensors are ignored. `disk` must outlive the
// source. Throws UserError with the file.
std::unique_ptr<TensorSource> open_torch_file(const Disk& disk, const std::string& path);

}  // namespace tutti
