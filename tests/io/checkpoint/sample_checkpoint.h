#pragma once

#include <ATen/ATen.h>

#include "io/checkpoint/checkpoint.h"

namespace tutti {

// Tensors of every kind that a checkpoint may hold: odd row counts, a scalar, an empty one, one without the
// rows to go round, every dtype in use. Element i has the value i (modulo 2 for bool).
inline std::map<std::string, at::Tensor> sample_tensors() {
  const auto counting = [](at::IntArrayRef shape, at::ScalarType dtype) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    const at::Tensor numbers = at::arange(count, at::kLong);
    return (dtype == at::kBool ? numbers.remainder(2) : numbers).to(dtype).reshape(shape);
  };
  return {{"model/layer1.0.conv1.weight", counting({7, 3, 3, 3}, at::kFloat)},
          {"model/fc.bias", counting({2}, at::kDouble)},
          {"model/embedding.weight", counting({1000, 33}, at::kFloat)},
          {"model/half", counting({5, 4}, at::kHalf)},
          {"model/brain", counting({5, 4}, at::kBFloat16)},
          {"model/mask", counting({9}, at::kBool)},
          {"model/bytes", counting({9}, at::kByte)},
          {"model/bn.num_batches_tracked", at::scalar_tensor(57, at::kLong)},
          {"model/empty", at::empty({0, 3}, at::kFloat)},
          {"optimizers/fc.bias/momentum_buffer", counting({2}, at::kFloat)},
          {"optimizers/fc.bias/step", at::scalar_tensor(58, at::kFloat)}};
}

// The pieces that rank `rank` of `world` owns, by rows.
inline std::vector<CheckpointPiece> pieces_of(const std::map<std::string, at::Tensor>& tensors, int rank,
                                              int world) {
  std::vector<CheckpointPiece> pieces;
  for (const auto& [name, tensor] : tensors) {
    CheckpointPiece piece{
        name, tensor.sizes().vec(), Shape(tensor.dim(), 0), tensor.sizes().vec(), tensor.scalar_type(), {},
        0};
    if (tensor.dim() == 0 && rank != 0) continue;
    if (tensor.dim() == 0) {
      piece.tensor = tensor;
    } else {
      const TensorRegion rows = split(whole_region(tensor.sizes()), 0, {world, rank});
      piece.offset = rows.offset;
      piece.extent = rows.extent;
      piece.tensor = narrowed(tensor, rows).contiguous();
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

inline void write_checkpoint(Disk& disk, const std::string& folder,
                             const std::map<std::string, at::Tensor>& tensors, int world,
                             const std::string& state = "{}") {
  CheckpointManifest manifest{{}, state};
  const std::string unfinished = folder + ".unfinished";
  for (int rank = 0; rank < world; ++rank) {
    manifest.files.push_back(write_rank_file(disk, unfinished, rank, pieces_of(tensors, rank, world)));
  }
  publish_checkpoint(disk, unfinished, folder, manifest);
}

}  // namespace tutti
