#pragma once

#include "actors/messages/messages.h"
#include "runtime/clock.h"
#include "training/state.h"

namespace tutti {

// What a step that is done came to, of all ranks: its line of metrics.jsonl. The state's time has moved on.
StepDone step_report(const State& state, const Verdict& verdict, double lr, Nanoseconds took);

}  // namespace tutti
