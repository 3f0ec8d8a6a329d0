#include "training/callbacks/monitors/memory_monitor.h"

#include "tensors/meter.h"
#include "training/state.h"

namespace tutti {

void MemoryMonitor::after_train_batch(State& state, Logger& logger) {
  constexpr double kBytesPerGb = 1e9;
  const auto gb = [](int64_t bytes) { return static_cast<double>(bytes) / kBytesPerGb; };
  logger.log_metrics({{"memory/current_allocated_mem", gb(Meter::used_bytes(state.memory_slot))},
                      {"memory/peak_allocated_mem", gb(Meter::peak_bytes(state.memory_slot))}});
}

}  // namespace tutti
