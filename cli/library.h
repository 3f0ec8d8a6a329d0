#pragma once

#include "commands/entry.h"

namespace tutti {

// Opens libtutti.so beside the executable or in ../lib and runs the request there; returns its exit code.
// Throws OperatingError when there is no such library.
int run_in_library(const TuttiRequest& request);

}  // namespace tutti
