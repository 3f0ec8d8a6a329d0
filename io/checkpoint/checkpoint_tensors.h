#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/tensor_source.h"
#include "runtime/disk.h"

namespace tutti {

// The tensors of a checkpoint of any world size. Reads only the requested bytes of the ranks' files, which
// verify_files must have accepted.
class CheckpointTensors final : public TensorSource {
 public:
  // The tensors whose names begin with `prefix`, under the rest of their names. Throws OperatingError if
  // pieces lie outside of their files or tensors, or do not make up whole tensors. `disk` must outlive this.
  CheckpointTensors(const Disk& disk, Checkpoint checkpoint, std::string_view prefix = "");
  CheckpointTensors(const CheckpointTensors&) = delete;
  CheckpointTensors& operator=(const CheckpointTensors&) = delete;

  // Throws OperatingError.
  void read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const override;

 private:
  struct Part {
    const RankFile* file;
    const CheckpointPiece* piece;
  };

  void add(const RankFile& file, std::string_view prefix);
  void require_whole() const;
  std::string path_of(const RankFile& file) const { return tutti::path_of(checkpoint_, file); }
  at::Tensor packed(const Part& part) const;
  void read_part(const Part& part, int64_t first, std::span<std::byte> to) const;

  const Disk& disk_;
  const Checkpoint checkpoint_;
  std::map<std::string, std::vector<Part>> parts_;
};

}  // namespace tutti
