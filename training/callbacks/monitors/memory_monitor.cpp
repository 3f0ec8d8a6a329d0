#include "training/callbacks/monitors/memory_monitor.h"

#include <ATen/DeviceAccelerator.h>

#include <algorithm>
#include <optional>

#include "recipe/catalog.h"
#include "recipe/placeholders.h"
#include "tensors/memory/meter.h"
#include "training/callbacks/options.h"
#include "training/state.h"

namespace tutti {
namespace {

using c10::CachingAllocator::StatType;
using c10::CachingDeviceAllocator::DeviceStats;

// A figure by PyTorch's name.
struct Figure {
  const char* key;
  const char* name;                            // Composer's
  int64_t (*meter_value)(int slot) = nullptr;  // null: a device's alone
  int64_t (*device_value)(const DeviceStats& stats) = nullptr;
};

constexpr auto kAll = static_cast<std::size_t>(StatType::AGGREGATE);

const std::vector<Figure>& figures() {
  using Stats = const DeviceStats&;
  static const std::vector<Figure> all{
      {"allocated_bytes.all.current", "current_allocated_mem", Meter::used_bytes},
      {"allocated_bytes.all.peak", "peak_allocated_mem", Meter::peak_bytes},
      {"active_bytes.all.current", "current_active_mem", nullptr,
       [](Stats s) { return s.active_bytes[kAll].current; }},
      {"active_bytes.all.peak", "peak_active_mem", nullptr,
       [](Stats s) { return s.active_bytes[kAll].peak; }},
      {"inactive_split_bytes.all.current", "current_inactive_mem", nullptr,
       [](Stats s) { return s.inactive_split_bytes[kAll].current; }},
      {"inactive_split_bytes.all.peak", "peak_inactive_mem", nullptr,
       [](Stats s) { return s.inactive_split_bytes[kAll].peak; }},
      {"reserved_bytes.all.current", "current_reserved_mem", nullptr,
       [](Stats s) { return s.reserved_bytes[kAll].current; }},
      {"reserved_bytes.all.peak", "peak_reserved_mem", nullptr,
       [](Stats s) { return s.reserved_bytes[kAll].peak; }},
      {"num_alloc_retries", "alloc_retries", nullptr, [](Stats s) { return s.num_alloc_retries; }},
  };
  return all;
}

const Figure* find_figure(const std::string& key) {
  const auto figure = std::ranges::find(figures(), key, &Figure::key);
  return figure == figures().end() ? nullptr : &*figure;
}

}  // namespace

MemoryMonitor::Keys MemoryMonitor::composers_keys() {
  Keys keys;
  for (const Figure& figure : figures()) keys.emplace_back(figure.key, figure.name);
  return keys;
}

MemoryMonitor::Keys MemoryMonitor::keys_of(const Setting& table) {
  const std::string example = figures()[1].key;
  if (!table.is_table()) table.fail("expected a table like {\"" + example + "\" = \"peak\"}");
  Keys keys;
  for (const auto& [key, name] : table.table()) {
    if (!find_figure(key)) {
      std::vector<std::string> known;
      for (const Figure& figure : figures()) known.emplace_back(figure.key);
      name.fail("unknown figure; expected one of " + joined(known));
    }
    keys.emplace_back(key, name.text());
    replace_all(keys.back().second, "bytes", "gigabytes");
  }
  return keys.empty() ? composers_keys() : keys;
}

void MemoryMonitor::after_train_batch(State& state, Logger& logger) {
  constexpr double kBytesPerGigabyte = 1e9;
  std::optional<DeviceStats> stats;
  if (!state.device.is_cpu()) stats = at::accelerator::getDeviceStats(state.device.where.index());
  LoggedMetrics metrics;
  for (const auto& [key, name] : keys_) {
    const Figure& figure = *find_figure(key);
    if (!figure.meter_value && !stats) continue;
    const auto value = static_cast<double>(figure.meter_value ? figure.meter_value(state.device.memory_slot)
                                                              : figure.device_value(*stats));
    metrics.emplace_back("memory/" + name, key.ends_with("retries") ? value : value / kBytesPerGigabyte);
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
