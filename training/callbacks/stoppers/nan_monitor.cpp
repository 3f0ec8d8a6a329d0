#include "training/callbacks/stoppers/nan_monitor.h"

#include <cmath>

#include "runtime/error.h"
#include "training/state.h"

namespace tutti {

void NaNMonitor::after_train_batch(State& state, Logger&) {
  if (!std::isnan(state.train_loss)) return;
  throw OperatingError("NaNMonitor: the training loss of step " + std::to_string(state.timestamp.batch + 1) +
                       " is not a number");
}

}  // namespace tutti
