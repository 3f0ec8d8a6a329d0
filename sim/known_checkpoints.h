#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "runtime/disk.h"

namespace tutti {

struct KnownCheckpoint {
  std::string error;     // what is wrong with it; "" = it is whole
  int64_t step = -1;     // that it was taken after
  uint64_t weights = 0;  // a hash
  // A hash of all that a checkpoint of that step must hold, whatever went wrong on the way: every tensor, and
  // of the state what no clock, no disk and no lack of memory decides. 0 where an evaluation is still due, or
  // algorithms may already have acted for the next step.
  uint64_t bits = 0;
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
