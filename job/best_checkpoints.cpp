#include "job/best_checkpoints.h"

#include <algorithm>
#include <cmath>

#include "io/formats/run_metrics.h"

namespace tutti {
BestSettings BestSettings::read(const Setting& table) {
  BestSettings settings;
  settings.metric = table.at("metric");
  const std::string& mode = table.at("mode").text();
  settings.less_is_better = mode == "auto" ? tutti::less_is_better(settings.metric.text()) : mode == "min";
  settings.keep = static_cast<int>(table.at("keep").integer());
  return settings;
}

bool BestValues::observe(double value) {
  state_.measured = std::isfinite(value);
  if (!state_.measured) return false;
  state_.value = value;
  auto& best = state_.best;
  const auto at = std::ranges::find_if(best, [&](double other) { return settings_.better(value, other); });
  const bool is_one = at != best.end() || std::ssize(best) < settings_.keep;
  best.insert(at, value);
  best.resize(std::min(best.size(), static_cast<std::size_t>(settings_.keep)));
  return is_one;
}

std::vector<std::string> best_checkpoints(const BestSettings& settings,
                                          const std::vector<std::pair<std::string, double>>& values) {
  auto ordered = values;
  std::ranges::stable_sort(
      ordered, [&](const auto& one, const auto& other) { return settings.better(one.second, other.second); });
  ordered.resize(std::min(ordered.size(), static_cast<std::size_t>(settings.keep)));
  std::vector<std::string> names;
  for (const auto& [name, value] : ordered) names.push_back(name);
  return names;
}

}  // namespace tutti
