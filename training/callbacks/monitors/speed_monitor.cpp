#include "training/callbacks/monitors/speed_monitor.h"

#include <algorithm>
#include <vector>

#include "io/json/json_line.h"
#include "recipe/time/time_text.h"
#include "runtime/error.h"
#include "runtime/text.h"
#include "training/state.h"

namespace tutti {
namespace {

struct Accelerator {
  std::vector<std::string> words;  // lower case; a device name must contain all
  double fp32 = 0;
  double fp16 = 0;
  double bf16 = 0;
  double fp8 = 0;
};

constexpr double kTera = 1e12;

// The first match counts. The name of the H200 does not distinguish its boards.
const std::vector<Accelerator>& devices() {
  static const std::vector<Accelerator> all = {
      {{"h200"}, 67, 989.5, 989.5, 1979},
      {{"h100", "pcie"}, 51, 756.5, 756.5, 1513},
      {{"h100", "hbm2e"}, 51, 756.5, 756.5, 1513},
      {{"h100", "hbm3"}, 67, 989.5, 989.5, 1979},
      {{"a100"}, 19.5, 312, 312},
      {{"a10"}, 31.2, 125, 125},
      {{"v100-sxm"}, 15.7, 125},
      {{"v100s-pcie"}, 16.4, 130},
      {{"v100-pcie"}, 14, 112},
      {{"t4"}, 8.1, 65},
  };
  return all;
}

bool matches(const Accelerator& device, const std::string& name) {
  return std::all_of(device.words.begin(), device.words.end(),
                     [&](const std::string& word) { return name.find(word) != std::string::npos; });
}

double peak_of(const Accelerator& device, const std::string& precision) {
  if (precision == "fp32") return device.fp32;
  if (precision == "amp_fp16" || precision == "amp") return device.fp16;
  if (precision == "amp_bf16") return device.bf16;
  if (precision == "amp_fp8") return device.fp8;
  return 0;
}

constexpr std::size_t kNumbersPerMoment = 4;

// Simulated clocks may stand still.
double rate(double count, double seconds) { return seconds > 0 ? count / seconds : 0.0; }

// Throughput of all ranks and of one device.
void add(LoggedMetrics& metrics, const std::string& what, double per_second, int world) {
  metrics.emplace_back("throughput/" + what + "_per_sec", per_second);
  metrics.emplace_back("throughput/device/" + what + "_per_sec", per_second / world);
}

}  // namespace

double peak_flops(const std::string& device_name, const std::string& precision) {
  const std::string name = lower_case(device_name);
  for (const Accelerator& device : devices())
    if (matches(device, name)) return kTera * peak_of(device, precision);
  return 0;
}

SpeedMonitor::SpeedMonitor(const Options& options)
    : options_(options), divider_(seconds_in(options.time_unit)) {}

void SpeedMonitor::batch_end(State& state, Logger& logger) {
  const Timestamp& now = state.timestamp;
  window_.push_back(
      {static_cast<double>(now.sample), static_cast<double>(now.token), now.total_wct, state.flops});
  const auto capacity = static_cast<std::size_t>(options_.window_size) + 1;
  if (window_.size() > capacity) window_.pop_front();
  if (window_.size() == capacity) logger.log_metrics(throughput(state));
  logger.log_metrics({{"time/train", now.total_wct / divider_},
                      {"time/val", eval_seconds_ / divider_},
                      {"time/total", (now.total_wct + eval_seconds_) / divider_}});
}

LoggedMetrics SpeedMonitor::throughput(const State& state) const {
  const Moment &from = window_.front(), &to = window_.back();
  const double seconds = to.seconds - from.seconds;
  LoggedMetrics metrics;
  add(metrics, "batches", rate(static_cast<double>(window_.size() - 1), seconds), state.topology.world);
  add(metrics, "samples", rate(to.samples - from.samples, seconds), state.topology.world);
  if (to.tokens > from.tokens)
    add(metrics, "tokens", rate(to.tokens - from.tokens, seconds), state.topology.world);
  double flops = -from.flops;
  for (const Moment& moment : window_) flops += moment.flops;
  if (to.flops <= 0) return metrics;
  add(metrics, "flops", rate(flops, seconds), state.topology.world);
  const double configured = options_.gpu_flops_available;
  const double peak = configured > 0 ? configured : peak_flops(state.device.name, state.precision.name);
  if (peak > 0)
    metrics.emplace_back("throughput/device/mfu", rate(flops, seconds) / state.topology.world / peak);
  return metrics;
}

void SpeedMonitor::eval_end(State& state, Logger&) { eval_seconds_ += state.eval_timestamp.total_wct; }

std::string SpeedMonitor::state() const {
  std::vector<double> window;
  for (const Moment& moment : window_)
    window.insert(window.end(), {moment.samples, moment.tokens, moment.seconds, moment.flops});
  return json_line({{"eval_seconds", eval_seconds_}, {"window", window}});
}

void SpeedMonitor::restore(const std::string& json) {
  eval_seconds_ = json_number(json, "eval_seconds");
  const auto window = json_numbers(json, "window");
  if (window.size() % kNumbersPerMoment != 0)
    throw UserError("SpeedMonitor: the window in the checkpoint is damaged");
  window_.clear();
  for (std::size_t i = 0; i < window.size(); i += kNumbersPerMoment)
    window_.push_back({window[i], window[i + 1], window[i + 2], window[i + 3]});
  while (window_.size() > static_cast<std::size_t>(options_.window_size) + 1) window_.pop_front();
}

CallbackPtr SpeedMonitorOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<SpeedMonitor>(*this);
}

}  // namespace tutti
