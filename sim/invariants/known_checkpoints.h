#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "runtime/disk.h"

namespace tutti {

// Hashes of the contents of a checkpoint.
struct SavedBits {
  uint64_t weights = 0;
  // A hash of the tensors and the state that are equal in every checkpoint of the step, whatever clock, disk
  // and memory do. 0 if work of the step is pending or algorithms may have begun the next.
  uint64_t all = 0;
};

struct KnownCheckpoint {
  std::string error;  // of reading it; "" = it is whole
  int64_t step = -1;  // after which it was taken
  SavedBits bits = {};
};

// A cache of read checkpoints, by the contents of their files: a simulation checks the same checkpoint many
// times, and parsing takes most of the time.
class KnownCheckpoints {
 public:
  const KnownCheckpoint& read(const Disk& disk, const std::string& folder);

 private:
  std::unordered_map<uint64_t, KnownCheckpoint> known_;
};

}  // namespace tutti
