#include "training/callbacks/monitors/lr_monitor.h"

#include "training/state.h"

namespace tutti {

void LrMonitor::batch_end(State& state, Logger& logger) {
  logger.log_metrics({{std::string("lr-") + state.optimizer->name() + "/group0", state.optimizer->lr()}});
}

}  // namespace tutti
