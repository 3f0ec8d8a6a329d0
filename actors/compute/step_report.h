#pragma once

#include "actors/messages/verdict.h"
#include "runtime/time_point.h"
#include "training/loggers/logger_destination.h"
#include "training/state.h"

namespace tutti {

// The numbers of a step that is done, but for its metrics. The state's time has moved on.
StepReport step_report(const State& state, const Verdict& verdict, double lr, Nanoseconds took);

}  // namespace tutti
