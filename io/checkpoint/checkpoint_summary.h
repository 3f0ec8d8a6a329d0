#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/disk.h"

namespace tutti {

// A manifest is read as a whole; one of thousands of ranks and tensors has some hundred million bytes.
inline constexpr uint64_t kMostManifestBytes = uint64_t{1} << 30;

// A checkpoint's summary from its manifest alone, read without libtorch.
struct CheckpointSummary {
  std::string name;
  int64_t step = 0;   // steps done
  int64_t epoch = 0;  // epochs done
  int64_t files = 0;
  int64_t bytes = 0;    // of all files
  std::string problem;  // why nothing above can be read; "" = nothing
};

// The published checkpoints in a folder, by step; empty if there is no such folder.
std::vector<CheckpointSummary> checkpoint_summaries(const Disk& disk, const std::string& checkpoints);

}  // namespace tutti
