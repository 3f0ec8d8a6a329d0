#include "job/records/run_report.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

namespace tutti {
namespace {

constexpr int kLastEvents = 100;

double unix_now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

// Field 22 of /proc/self/stat is the start in clock ticks since boot, which /proc/uptime dates.
double process_started_s() {
  std::ifstream stat("/proc/self/stat"), uptime("/proc/uptime");
  std::string text;
  double up_s = 0;
  if (!std::getline(stat, text) || !(uptime >> up_s)) return unix_now_s();
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 3; i < 22; ++i) fields >> skipped;
  double ticks = 0;
  fields >> ticks;
  return unix_now_s() - (up_s - ticks / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

std::string rank_log_path(const std::string& run_dir, int rank) {
  return run_dir + "/log/rank-" + std::to_string(rank) + ".log";
}

void log_trouble(Log& log, const Recorder& recorder) {
  const std::string why = recorder.incomplete();
  if (!why.empty()) log.warning("the journal is not whole, and cannot be replayed to its end: " + why);
}

void log_last_events(Log& log, const Recorder& recorder, TimePoint now) {
  log.info("the last that was done:");
  for (const auto& event : recorder.last(kLastEvents)) {
    char line[200];
    std::snprintf(line, sizeof line, "%9.3f s ago  %-12s %s (after step %lld, %lld)",
                  seconds(now - event.time), name(actor_of(event.kind)), name(event.kind),
                  static_cast<long long>(event.step), static_cast<long long>(event.detail));
    log.info(line);
  }
  log.flush();
}

}  // namespace tutti
