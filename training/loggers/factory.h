#pragma once

#include <cstdio>
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

// Outside objects that destinations use, and that outlive the destinations.
struct LoggerSeams {
  Disk& disk;
  Clock& clock;
  Log& log;
  std::FILE* out = nullptr;  // null: prints nothing
  std::FILE* err = nullptr;
  StartChild start_child = nullptr;  // null: no program is started
  OpenHttp open_http = nullptr;      // null: no server is reached
};

// Makes the [[loggers]] of a resolved recipe in order, without plugins' loggers, preceded by the console of
// [train] log_to_console.
Destinations make_loggers(const Setting& recipe, const LoggerSeams& seams);

// Throws UserError for an unknown placeholder in a file name, and for a file that several ranks would write.
void check_loggers(const Setting& recipe);

}  // namespace tutti
