#include "training/callbacks/monitors/memory_monitor.h"

#include "recipe/placeholders.h"
#include "tensors/meter.h"
#include "training/callbacks/options.h"
#include "training/state.h"

namespace tutti {
namespace {

// PyTorch's names of the figures.
constexpr const char* kCurrentBytes = "allocated_bytes.all.current";
constexpr const char* kPeakBytes = "allocated_bytes.all.peak";

}  // namespace

MemoryMonitor::Keys MemoryMonitor::composers_keys() {
  return {{kCurrentBytes, "current_allocated_mem"}, {kPeakBytes, "peak_allocated_mem"}};
}

MemoryMonitor::Keys MemoryMonitor::keys_of(const Setting& table) {
  if (!table.is_table()) table.fail(std::string("expected a table like {\"") + kPeakBytes + "\" = \"peak\"}");
  Keys keys;
  for (const auto& [key, name] : table.table()) {
    if (key != kCurrentBytes && key != kPeakBytes)
      name.fail(std::string("unknown figure; expected one of ") + kCurrentBytes + " and " + kPeakBytes);
    keys.emplace_back(key, name.text());
    replace_all(keys.back().second, "bytes", "gigabytes");
  }
  return keys.empty() ? composers_keys() : keys;
}

void MemoryMonitor::after_train_batch(State& state, Logger& logger) {
  constexpr double kBytesPerGigabyte = 1e9;
  LoggedMetrics metrics;
  for (const auto& [key, name] : keys_) {
    const int64_t bytes = key == kCurrentBytes ? Meter::used_bytes(state.device.memory_slot)
                                               : Meter::peak_bytes(state.device.memory_slot);
    metrics.emplace_back("memory/" + name, static_cast<double>(bytes) / kBytesPerGigabyte);
  }
  logger.log_metrics(metrics);
}

CallbackPtr MemoryMonitorOptions::make(const Setting&, const CallbackEnvironment&) const {
  if (!memory_keys) return std::make_shared<MemoryMonitor>();
  return std::make_shared<MemoryMonitor>(MemoryMonitor::keys_of(*memory_keys));
}

CallbackPtr FreeOutputsOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<FreeOutputs>();
}

}  // namespace tutti
