#include <algorithm>
#include <array>
#include <span>
#include <sstream>
#include <string_view>

#include "io/json/json_line.h"
#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

// Prefixes of the names of values that a clock or the memory in use decides.
constexpr std::array<std::string_view, 17> kMeasured = {
    "step_ms",       "data_wait_ms", "data_read_ms", "data_disk_ms", "samples_per_s",  "memory_peak_mb",
    "since_start_s", "time/train",   "time/val",     "time/total",   "time/remaining", "throughput/",
    "wall_clock/",   "memory/",      "cpu_",         "disk_memory_", "network_"};

bool is_measured(const std::string& key) {
  return std::ranges::any_of(kMeasured, [&](std::string_view begin) { return key.starts_with(begin); });
}

// The fourth column of "step,batch,epoch,name,value".
std::string name_in_row(const std::string& row) {
  std::size_t begin = 0;
  for (int column = 0; column < 3; ++column) begin = row.find(',', begin) + 1;
  return row.substr(begin, row.find(',', begin) - begin);
}

bool ran_out_of_memory(const SimAttempt& attempt) {
  if (attempt.had_fault(FaultKind::kOutOfMemory)) return true;
  for (const auto& rank : attempt.steps)
    for (const auto& [step, seen] : rank)
      if (seen.aborted_microbatches > 0) return true;
  return false;
}

// True if writes to a log may have failed: rules for files of checkpoints do not count.
bool log_writes_failed(const Reference& reference, const SimAttempt& attempt) {
  return std::ranges::any_of(reference.plan.rules, [&](const FaultRule& rule) {
    return rule.affects_writes() && rule.file.find("checkpoint") == std::string::npos &&
           attempt.had_fault(rule);
  });
}

}  // namespace

std::map<std::string, std::vector<std::string>> logged_lines(const Disk& disk, const std::string& run_dir) {
  std::map<std::string, std::vector<std::string>> files;
  for (const std::string& name : disk.list(run_dir)) {
    const bool is_csv = name.ends_with(".csv");
    if (!is_csv && name != "metrics.jsonl") continue;
    const auto bytes = disk.read(run_dir + "/" + name);
    std::istringstream text(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    std::vector<std::string>& lines = files[name];
    for (std::string line; std::getline(text, line);) {
      if (!is_csv)
        lines.push_back(json_without(line, is_measured));
      else if (!is_measured(name_in_row(line)))
        lines.push_back(line);
    }
  }
  return files;
}

void check_logs(const Reference& reference, const SimRun& run, Findings& findings) {
  if (run.attempts.empty() || !run.attempts.back().well() || run.attempts.back().stopped()) return;
  for (const SimAttempt& attempt : run.attempts)
    if (ran_out_of_memory(attempt) || log_writes_failed(reference, attempt)) return;
  for (const auto& [name, expected] : reference.fault_free.logged) {
    const auto logged = run.logged.find(name);
    const auto lines = logged == run.logged.end() ? std::vector<std::string>() : logged->second;
    const auto [line, other] = std::ranges::mismatch(lines, expected);
    if (line == lines.end() && other == expected.end()) continue;
    const auto text = [](auto at, auto end) { return at == end ? "nothing" : at->substr(0, 200); };
    findings.push_back(name + ", line " + std::to_string(line - lines.begin() + 1) + ", has " +
                       text(line, lines.end()) + "; that of the run without faults has " +
                       text(other, expected.end()));
  }
}

}  // namespace tutti
