#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <map>
#include <string>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/weights/weights.h"
#include "runtime/disk.h"

namespace tutti {

// A checkpoint that was verified and read as a whole.
struct WholeCheckpoint {
  std::string folder;
  std::string state;
  std::map<std::string, at::Tensor> tensors;
};

inline at::Tensor read_all(const TensorSource& source, const std::string& name) {
  const TensorSource::Entry& entry = source.at(name);
  at::Tensor tensor = at::empty(entry.shape, entry.dtype);
  source.read(name, whole_region(entry.shape), tensor);
  return tensor;
}

inline std::map<std::string, at::Tensor> all_of(const TensorSource& source) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, entry] : source.entries()) tensors[name] = read_all(source, name);
  return tensors;
}

inline std::map<std::string, at::Tensor> read_weights(const std::string& path) {
  const PosixDisk disk;
  return all_of(*open_weights(disk, path));
}

inline WholeCheckpoint whole(const Disk& disk, const Checkpoint& checkpoint) {
  return {checkpoint.folder, checkpoint.manifest.state, all_of(CheckpointTensors(disk, checkpoint))};
}

inline WholeCheckpoint read_checkpoint(const Disk& disk, const std::string& folder) {
  const Checkpoint checkpoint = open_checkpoint(disk, folder);
  verify_files(disk, checkpoint);
  return whole(disk, checkpoint);
}

// The newest good one of a run.
inline WholeCheckpoint newest_checkpoint(const std::string& run) {
  const PosixDisk disk;
  return whole(disk, find_checkpoint(disk, run, {[](const std::string&) {}}));
}

inline uint64_t digest_of(const std::map<std::string, at::Tensor>& tensors, std::string_view prefix = "") {
  return tensors_digest(MemoryTensors(tensors), prefix);
}

}  // namespace tutti
