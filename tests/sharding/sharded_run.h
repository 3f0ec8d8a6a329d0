#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "job/job.h"

namespace tutti {

// A strategy of [sharding] for a number of ranks, with other keys of the section.
struct Sharded {
  std::string strategy = "none";
  int ranks = 2;
  std::string more = {};  // TOML keys of [sharding]

  std::string text() const { return strategy + " on " + std::to_string(ranks); }
};

inline void PrintTo(const Sharded& sharded, std::ostream* out) { *out << sharded.text(); }

// The result of a run of ranks in this process.
struct ShardedRun {
  std::string digest;   // of parameters and buffers
  std::string metrics;  // metrics.jsonl without times and memory
  double peak_mb = 0;   // of the largest rank, by the meter
};

// Runs it in `folder`, which may hold an earlier run (`resume`: "auto", or the folder to start from).
struct ShardedJob {
  std::string recipe;
  std::string folder;
  std::string resume = {};
  std::function<void(Job& job)> prepare = {};

  ShardedRun run(const Sharded& sharded) const;
};

}  // namespace tutti
