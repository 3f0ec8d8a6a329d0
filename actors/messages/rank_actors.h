#pragma once

#include <string>
#include <vector>

#include "runtime/actor/actor.h"

namespace tutti {

// The writer of a log destination (LoggerDestination), and what others know of it.
struct LogActor {
  ActorId writer;
  std::string name;                  // "metrics.jsonl", "logger CsvLogger"
  Nanoseconds full_queue_timeout{};  // how long training waits for room
  Nanoseconds sync_timeout{};        // how long a checkpoint waits for its records; 0: it does not
  bool numbers_only = false;
};

// The actors of a rank, by the ids that messages to them carry.
struct RankActors {
  ActorId loader, compute, sync, checkpointer, supervisor;
  std::vector<ActorId> eval_loaders;  // one for each evaluator
  std::vector<LogActor> logs;         // rank 0 has metrics.jsonl first
};

}  // namespace tutti
