#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "job/job.h"
#include "runtime/recorder.h"

namespace tutti {

// Ranks of one process, as made by commands/local_train, whose allocations fail as the test says; their
// results and messages.
struct MemoryWorld {
  std::string recipe;
  int ranks = 2;
  std::map<int, std::vector<int64_t>> failures;  // by rank: ordinals of Meter::fail_at
  ModelFactory make_model = tutti::make_model;
  uint64_t schedule_seed = 0;
  Listeners listeners = {};
  std::vector<Task> tasks = {};
  bool real_time = false;
  std::function<std::unique_ptr<Recorder>(int rank)> recorder = {};  // one that answers; none: a ring
  std::function<std::shared_ptr<Group>(std::shared_ptr<Group> below, int rank)> group = {};  // of each role

  struct Outcome {
    std::vector<std::string> losses;       // of the steps, as written
    std::vector<int64_t> counts;           // grad_accum of each
    std::vector<std::string> evaluations;  // their lines
    std::string metrics;                   // the whole of metrics.jsonl
    double peak_mb = 0;                    // of the largest rank
    std::string weights;                   // all bytes of rank 0's parameters and buffers; "" if sharded
    std::vector<std::string> warnings;     // of all ranks
    std::string error;                     // with which the run ended, or ""
    std::vector<int64_t> allocations;      // of each rank, in scopes
    std::vector<int64_t> left_in_scopes;   // bytes, of each rank

    std::string schedule() const;  // the counts as grad_accum takes them: "[[0, 1], [7, 2]]"
    bool has_warning(const std::string& text) const;
  };
  // `grad_accum` stands in place of the recipe's.
  Outcome run(const std::string& grad_accum) const;
};

}  // namespace tutti
