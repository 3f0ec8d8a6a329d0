#include "sim/simulate/probe_counts.h"

#include <algorithm>

#include "runtime/probe/probe.h"

namespace tutti {

std::map<std::string, std::string> probe_places() {
  std::map<std::string, std::string> places;
  for (const Probe* probe : all_probes())
    places[probe->name] = probe->file + (":" + std::to_string(probe->line));
  return places;
}

std::vector<std::string> hit_probes() {
  std::vector<std::string> names;
  for (const Probe* probe : all_probes())
    if (probe->is_hit) names.emplace_back(probe->name);
  return names;
}

ProbeCounts::ProbeCounts(std::map<std::string, std::string> places) : places_(std::move(places)) {
  for (const auto& [name, place] : places_) seeds_[name] = 0;
}

void ProbeCounts::add(const std::vector<std::string>& hit) {
  for (const std::string& name : hit)
    if (const auto seeds = seeds_.find(name); seeds != seeds_.end()) ++seeds->second;
}

bool ProbeCounts::all_hit() const { return never_hit().empty(); }

std::string ProbeCounts::summary() const {
  return std::to_string(places_.size() - never_hit().size()) + " of " + std::to_string(places_.size()) +
         " hit";
}

std::vector<std::string> ProbeCounts::never_hit() const {
  std::vector<std::string> texts;
  for (const auto& [name, seeds] : seeds_)
    if (seeds == 0) texts.push_back(places_.at(name) + ": " + name);
  std::ranges::sort(texts);
  return texts;
}

std::vector<std::string> ProbeCounts::rarest(std::size_t most) const {
  std::vector<std::pair<int64_t, std::string>> counted;
  for (const auto& [name, seeds] : seeds_)
    if (seeds > 0) counted.emplace_back(seeds, name);
  std::ranges::sort(counted);
  counted.resize(std::min(most, counted.size()));
  std::vector<std::string> texts;
  for (const auto& [seeds, name] : counted) texts.push_back(std::to_string(seeds) + ": " + name);
  return texts;
}

}  // namespace tutti
