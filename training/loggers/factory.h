#pragma once

#include <cstdio>
#include <memory>
#include <vector>

#include "recipe/setting.h"
#include "runtime/clock.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "runtime/process/child_process.h"
#include "training/loggers/logger_destination.h"

namespace tutti {

using Destinations = std::vector<std::shared_ptr<LoggerDestination>>;

// What destinations reach the outside by; all of it must outlive them.
struct LoggerSeams {
  Disk& disk;
  Clock& clock;
  Log& log;
  std::FILE* out = nullptr;  // null: nothing is shown
  std::FILE* err = nullptr;
  StartChild start_child = nullptr;  // null: no program is started
};

// What the [[loggers]] of a resolved recipe name, in their order, and the console that [train] log_to_console
// asks for.
Destinations make_loggers(const Setting& recipe, const LoggerSeams& seams);

// Throws UserError where [[loggers]] name what there is not: hosted services, a placeholder of a file's name,
// a file that several ranks would write.
void check_loggers(const Setting& recipe);

}  // namespace tutti
