#include "io/checkpoint/state_patterns.h"

#include <fnmatch.h>

#include <algorithm>

namespace tutti {
namespace {

constexpr std::string_view kState = "state/";  // Composer's

}  // namespace

StatePatterns::StatePatterns(std::vector<std::string> patterns, char separator)
    : patterns_(std::move(patterns)), separator_(separator) {}

bool StatePatterns::fits(const std::string& pattern, const std::string& name) const {
  const std::size_t skipped = pattern.starts_with(kState) ? kState.size() : 0;
  std::string part = name;
  for (;;) {
    if (fnmatch(pattern.c_str() + skipped, part.c_str(), 0) == 0) return true;
    const std::size_t slash = part.rfind(separator_);
    if (slash == std::string::npos) return false;
    part.resize(slash);
  }
}

bool StatePatterns::fit(const std::string& name) const {
  return std::ranges::any_of(patterns_, [&](const std::string& pattern) { return fits(pattern, name); });
}

std::vector<std::string> StatePatterns::idle(const std::vector<std::string>& names) const {
  std::vector<std::string> idle;
  for (const std::string& pattern : patterns_) {
    const auto it_fits = [&](const std::string& name) { return fits(pattern, name); };
    if (std::ranges::none_of(names, it_fits)) idle.push_back(pattern);
  }
  return idle;
}

}  // namespace tutti
