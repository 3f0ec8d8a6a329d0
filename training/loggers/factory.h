#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#include "io/http/http_client.h"
#include "recipe/setting.h"
#include "runtime/clock.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "runtime/process/child_process.h"
#include "training/loggers/logger_destination.h"

namespace tutti {

using Destinations = std::vector<std::shared_ptr<LoggerDestination>>;

// Calls for the end of a run with an error, once no logger gets records any more: each takes a few seconds at
// most, and throws nothing.
using AtFailure = std::vector<std::function<void()>>;

// Outside objects that destinations use, and that outlive the destinations.
struct LoggerSeams {
  Disk& disk;
  Clock& clock;
  Log& log;
  std::FILE* out = nullptr;  // null: prints nothing
  std::FILE* err = nullptr;
  StartChild start_child = nullptr;  // null: no program is started
  OpenHttp open_http = nullptr;      // null: no server is reached
  AtFailure* at_failure = nullptr;   // null: nobody calls
};

// Makes the [[loggers]] of a resolved recipe in order, without plugins' loggers, preceded by the console of
// [train] log_to_console.
Destinations make_loggers(const Setting& recipe, const LoggerSeams& seams);

// Throws UserError for an unknown placeholder in a file name, and for a file that several ranks would write.
void check_loggers(const Setting& recipe);

}  // namespace tutti
