#pragma once

#include <memory>
#include <string>

#include "io/checkpoint/tensor_source.h"
#include "runtime/disk.h"

namespace tutti {

// Opens weights, by name. `path` is
//   .safetensors;
//   .h5, .hdf5: datasets at the root or in the group "model";
//   .pt, .pth, .bin, .ckpt: a state dict of torch.save (io/weights/torch_file.h);
//   .index.json: Hugging Face's list of the files of a set, which are beside it;
//   a folder with model.safetensors or pytorch_model.bin, or with the index of such a set;
//   a checkpoint's folder, of which each of several ranks verifies some of the files, as in verify_files.
// Values are read when they are asked for. `disk` must outlive the weights. Throws UserError with the file.
std::unique_ptr<TensorSource> open_weights(const Disk& disk, const std::string& path,
                                           const AxisRank& rank = {});

}  // namespace tutti
