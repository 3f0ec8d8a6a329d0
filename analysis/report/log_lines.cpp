#include "analysis/report/log_lines.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "io/run_paths.h"

namespace tutti {
namespace {

constexpr std::size_t kMost = 200;
constexpr std::size_t kTimeBytes = 23;  // 2026-11-23 19:24:26.254

// Takes the first word off a line.
std::string_view next_word(std::string_view& line) {
  const auto end = std::min(line.find(' '), line.size());
  const auto word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

// A line "TIME LEVEL rank N TEXT" (runtime/log.cpp); nothing for other levels and other lines.
std::optional<LogFault> fault_of(std::string_view line, int rank) {
  if (line.size() < kTimeBytes + 1 || line[4] != '-' || line[kTimeBytes] != ' ') return std::nullopt;
  LogFault fault{std::string(line.substr(0, kTimeBytes)), false, {rank}, ""};
  line.remove_prefix(kTimeBytes + 1);
  const auto level = next_word(line);
  fault.is_error = level == "error";
  if (!fault.is_error && level != "warning") return std::nullopt;
  if (next_word(line) != "rank") return std::nullopt;
  next_word(line);
  fault.text = line;
  return fault;
}

// The faults of all logs, one for each text.
class Collector {
 public:
  void read(std::string_view text, int rank) {
    for (auto end = text.find('\n'); end != text.npos; end = text.find('\n')) {
      if (auto fault = fault_of(text.substr(0, end), rank)) add(std::move(*fault));
      text.remove_prefix(end + 1);
    }
  }

  LogFaults newest() {
    std::ranges::stable_sort(faults_, {}, &LogFault::when);
    const std::size_t left_out = faults_.size() > kMost ? faults_.size() - kMost : 0;
    return {{faults_.begin() + static_cast<std::ptrdiff_t>(left_out), faults_.end()},
            static_cast<int64_t>(left_out)};
  }

 private:
  void add(LogFault fault) {
    const int rank = fault.ranks.front();
    const auto [place, fresh] = places_.try_emplace(fault.text, faults_.size());
    if (!fresh && std::ranges::count(faults_[place->second].ranks, rank) == 0)
      return faults_[place->second].ranks.push_back(rank);
    places_[fault.text] = faults_.size();
    faults_.push_back(std::move(fault));
  }

  std::vector<LogFault> faults_;
  std::map<std::string, std::size_t> places_;
};

}  // namespace

LogFaults log_faults(const Disk& disk, const std::string& run_dir, int world) {
  Collector found;
  for (int rank = 0; rank < world; ++rank) {
    const std::string path = path_in_run(run_dir, "log/rank-" + std::to_string(rank) + ".log");
    if (!disk.exists(path)) continue;
    const auto bytes = disk.read(path);
    found.read({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, rank);
  }
  return found.newest();
}

}  // namespace tutti
