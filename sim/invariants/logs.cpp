#include <algorithm>
#include <array>
#include <span>
#include <sstream>
#include <string_view>

#include "io/formats/json_line.h"
#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

// Begins the names of what a clock or the memory in use decides.
constexpr std::array<std::string_view, 14> kMeasured = {
    "step_ms",  "samples_per_s", "memory_peak_mb", "since_start_s", "time/train",
    "time/val", "time/total",    "time/remaining", "throughput/",   "wall_clock/",
    "memory/",  "cpu_",          "disk_memory_",   "network_"};

bool is_measured(const std::string& key) {
  return std::ranges::any_of(kMeasured, [&](std::string_view begin) { return key.starts_with(begin); });
}

// Of "step,batch,epoch,name,value".
std::string name_in_row(const std::string& row) {
  std::size_t begin = 0;
  for (int column = 0; column < 3; ++column) begin = row.find(',', begin) + 1;
  return row.substr(begin, row.find(',', begin) - begin);
}

bool ran_out_of_memory(const StartSeen& start) {
  if (start.happened("out_of_memory")) return true;
  for (const auto& rank : start.steps)
    for (const auto& [step, seen] : rank)
      if (seen.aborted_microbatches > 0) return true;
  return false;
}

// Writes of checkpoints that fail cost nothing that was logged.
bool log_was_struck(const RunFacts& facts, const StartSeen& start) {
  return std::ranges::any_of(facts.plan.rules, [&](const FaultRule& rule) {
    return rule.hits_disk() && rule.file.find("checkpoint") == std::string::npos && start.happened(rule);
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

void check_logs(const RunFacts& facts, const RunSeen& run, Findings& findings) {
  if (run.starts.empty() || !run.starts.back().well() || run.starts.back().stopped()) return;
  for (const StartSeen& start : run.starts)
    if (ran_out_of_memory(start) || log_was_struck(facts, start)) return;
  for (const auto& [name, expected] : facts.fault_free.logged) {
    const auto found = run.logged.find(name);
    const auto lines = found == run.logged.end() ? std::vector<std::string>() : found->second;
    const auto [line, other] = std::ranges::mismatch(lines, expected);
    if (line == lines.end() && other == expected.end()) continue;
    const auto text = [](auto at, auto end) { return at == end ? "nothing" : at->substr(0, 200); };
    findings.push_back(name + ", line " + std::to_string(line - lines.begin() + 1) + ", has " +
                       text(line, lines.end()) + "; that of the run without faults has " +
                       text(other, expected.end()));
  }
}

}  // namespace tutti
