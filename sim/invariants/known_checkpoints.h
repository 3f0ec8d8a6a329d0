#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "runtime/disk.h"

namespace tutti {

// Hashes of what a checkpoint holds.
struct SavedBits {
  uint64_t weights = 0;
  // Of all that a checkpoint of that step must hold, whatever went wrong on the way: every tensor, and of the
  // state what no clock, no disk and no lack of memory decides. 0 where something of the step is still due,
  // or algorithms may already have acted for the next one.
  uint64_t all = 0;
};

struct KnownCheckpoint {
  std::string error;  // what is wrong with it; "" = it is whole
  int64_t step = -1;  // that it was taken after
  SavedBits bits = {};
};

// What reading a checkpoint comes to, by its files' bytes: a simulation looks at the same ones again and
// again, and reading takes most of the time of looking.
class KnownCheckpoints {
 public:
  const KnownCheckpoint& look(const Disk& disk, const std::string& folder);

 private:
  std::unordered_map<uint64_t, KnownCheckpoint> known_;
};

}  // namespace tutti
