#include "training/callbacks/monitors/system_metrics.h"

#include <sys/statvfs.h>

#include <array>
#include <fstream>
#include <map>
#include <sstream>

#include "training/callbacks/options.h"

namespace tutti {
namespace {

constexpr double kBytesPerKb = 1024;

double percent(double part, double whole) { return whole > 0 ? 100.0 * part / whole : 0.0; }

std::map<std::string, double> read_memory(const std::string& path) {
  std::map<std::string, double> bytes;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    double kb = 0;
    if (words >> name >> kb) bytes[name.substr(0, name.find(':'))] = kb * kBytesPerKb;
  }
  return bytes;
}

void add_disk(LoggedMetrics& metrics) {
  struct statvfs filesystem {};
  if (statvfs("/", &filesystem) != 0) return;
  const auto bytes = [&](auto blocks) {
    return static_cast<double>(blocks) * static_cast<double>(filesystem.f_frsize);
  };
  const double used = bytes(filesystem.f_blocks - filesystem.f_bfree), free = bytes(filesystem.f_bavail);
  metrics.emplace_back("disk_memory_total", bytes(filesystem.f_blocks));
  metrics.emplace_back("disk_memory_used", used);
  metrics.emplace_back("disk_memory_free", free);
  metrics.emplace_back("disk_memory_percent", percent(used, used + free));
}

// Columns of /proc/net/dev and their names.
const std::array<std::pair<std::size_t, const char*>, 8> kNetwork = {{{8, "bytes_sent"},
                                                                      {0, "bytes_recv"},
                                                                      {9, "packets_sent"},
                                                                      {1, "packets_recv"},
                                                                      {2, "errin"},
                                                                      {10, "errout"},
                                                                      {3, "dropin"},
                                                                      {11, "dropout"}}};

}  // namespace

LoggedMetrics SystemMetrics::read() {
  LoggedMetrics metrics;
  add_cpu(metrics);
  add_memory(metrics);
  add_disk(metrics);
  add_network(metrics);
  return metrics;
}

// Columns: user nice system idle iowait irq softirq steal; guest time is part of user and nice.
void SystemMetrics::add_cpu(LoggedMetrics& metrics) {
  std::ifstream file(proc_ + "/stat");
  std::string name;
  file >> name;
  std::array<double, 8> ticks{};
  double all = 0;
  for (double& tick : ticks) {
    if (!(file >> tick)) return;
    all += tick;
  }
  const double busy = all - ticks[3] - ticks[4];
  metrics.emplace_back("cpu_percentage", busy_ < 0 ? 0.0 : percent(busy - busy_, all - all_));
  busy_ = busy;
  all_ = all;
}

void SystemMetrics::add_memory(LoggedMetrics& metrics) const {
  auto bytes = read_memory(proc_ + "/meminfo");
  if (bytes.empty()) return;
  const double total = bytes["MemTotal"], available = bytes["MemAvailable"];
  const double cached = bytes["Cached"] + bytes["SReclaimable"];
  const double used = total - bytes["MemFree"] - cached - bytes["Buffers"];
  const auto add = [&](const char* name, double value) {
    metrics.emplace_back(std::string("cpu_memory_") + name, value);
  };
  add("total", total);
  add("available", available);
  add("percent", percent(total - available, total));
  add("used", used >= 0 ? used : total - bytes["MemFree"]);
  add("free", bytes["MemFree"]);
  add("active", bytes["Active"]);
  add("inactive", bytes["Inactive"]);
  add("buffers", bytes["Buffers"]);
  add("cached", cached);
  add("shared", bytes["Shmem"]);
  add("slab", bytes["Slab"]);
}

void SystemMetrics::add_network(LoggedMetrics& metrics) const {
  std::ifstream file(proc_ + "/net/dev");
  std::array<double, 16> sums{};
  bool has_device = false;
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;  // the header
    has_device = true;
    std::istringstream columns(line.substr(colon + 1));
    double value = 0;
    for (double& sum : sums)
      if (columns >> value) sum += value;
  }
  if (!has_device) return;
  for (const auto& [column, name] : kNetwork)
    metrics.emplace_back(std::string("network_") + name, sums[column]);
}

CallbackPtr SystemMetricsMonitorOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<SystemMetricsMonitor>();
}

}  // namespace tutti
