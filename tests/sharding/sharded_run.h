#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "job/job.h"

namespace tutti {

// Parts of recipes for small models; [train] is the last section.
inline const std::string kTextData = R"([data.train]
kind = 'bytes'
path = ')" TUTTI_SOURCE_DIR R"(/examples/data/king_james.txt'
sequence_length = 8
batch_size = 12
)";
inline const std::string kClippedAdamW = R"([optimizer]
kind = 'adamw'
lr = 0.01
[[algorithms]]
kind = 'gradient_clipping'
clipping_type = 'norm'
clipping_threshold = 0.5
[train]
)";
inline const std::string kSyntheticMlp = R"(seed = 5
[model]
kind = 'mlp'
hidden = [33, 17]
[data.train]
kind = 'synthetic'
samples = 100
batch_size = 20
shape = [12]
[data.eval]
kind = 'synthetic'
samples = 30
batch_size = 12
shape = [12]
[optimizer]
kind = 'adamw'
lr = 0.01
[collectives]
bucket_mb = 0.002
[train]
)";
// A key of [train].
inline std::string steps(int count) { return "max_duration = '" + std::to_string(count) + "ba'\n"; }

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
