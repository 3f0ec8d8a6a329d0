#pragma once

#include <string>
#include <vector>

#include "runtime/actor/actor.h"

namespace tutti {

// A log for whose records a checkpoint waits, but not for long: metrics.jsonl, and the destinations that are
// durable (LoggerDestination).
struct DurableLog {
  static constexpr Nanoseconds kWaitAtMost = std::chrono::seconds(1);

  ActorId writer;
  std::string name;  // "logger CsvLogger"
  Nanoseconds wait_at_most = kWaitAtMost;
};

// The actors of a rank, by the ids that messages to them carry.
struct RankActors {
  ActorId loader, compute, sync, checkpointer, supervisor, reporter;
  std::vector<ActorId> eval_loaders;  // one for each evaluator
  bool has_reporter = false;
  std::vector<ActorId> log_writers;
  std::vector<std::string> log_names;    // theirs: "logger CsvLogger"
  std::vector<DurableLog> durable_logs;  // the Reporter, and those of them for which a checkpoint waits
};

}  // namespace tutti
