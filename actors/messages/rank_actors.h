#pragma once

#include <string>
#include <vector>

#include "runtime/actor/actor.h"

namespace tutti {

// The writer of a log destination (LoggerDestination) and the settings of its queue.
struct LogActor {
  ActorId writer;
  std::string name;            // "metrics.jsonl", "logger CsvLogger"
  Nanoseconds sync_timeout{};  // how long a checkpoint waits for the records; 0 = not at all
  bool numbers_only = false;
  Nanoseconds report_interval{};  // least training time between step reports
};

// The actors of a rank.
struct RankActors {
  ActorId loader, compute, sync, checkpointer, supervisor;
  std::vector<ActorId> eval_loaders;  // one for each evaluator
  std::vector<LogActor> logs;         // rank 0 has metrics.jsonl first
};

}  // namespace tutti
