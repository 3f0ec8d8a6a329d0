#include "cli/sweep/search_space.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "analysis/comparison/short_names.h"
#include "recipe/time/time_text.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/random.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::size_t kMostTrials = 10'000;
constexpr std::size_t kMostOfName = 120;  // bytes

// At commas outside of brackets and quotes.
std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote == 0 && (c == '"' || c == '\''))
      quote = c;
    else if (c == quote)
      quote = 0;
    if (quote == 0) depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (c == ',' && depth == 0 && quote == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

[[noreturn]] void fail_option(const char* option, const std::string& text, const std::string& message) {
  throw UserError(std::string(option) + ' ' + shown(text) + ": " + message);
}

// "KEY=REST".
std::pair<std::string, std::string> split_at_equals(const char* option, const std::string& text,
                                                    const char* expected) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || equals == 0 || equals + 1 == text.size())
    fail_option(option, text, std::string("expected ") + expected);
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<std::string> values_of(const char* option, const std::string& text, const std::string& list) {
  std::vector<std::string> values = split_at_commas(list);
  if (std::ranges::count(values, "") > 0)
    fail_option(option, text, "there is no value before or behind a comma");
  return values;
}

// A range or choices, and how they are drawn.
class Distribution {
 public:
  explicit Distribution(const std::string& text) {
    const char* expected = "KEY=0.1..0.5, KEY=log:1e-4..1e-1, KEY=int:1..8 or KEY=a,b,c";
    std::string rest;
    std::tie(key, rest) = split_at_equals("--random", text, expected);
    is_log_ = rest.starts_with("log:");
    is_whole_ = rest.starts_with("int:");
    if (is_log_ || is_whole_) rest.erase(0, 4);
    const std::size_t dots = rest.find("..");
    const auto low = python_float(rest.substr(0, dots));
    const auto high = dots == rest.npos ? std::nullopt : python_float(rest.substr(dots + 2));
    if (!low || !high) {
      if (is_log_ || is_whole_ || dots != rest.npos)
        fail_option("--random", text, std::string("expected ") + expected);
      choices_ = values_of("--random", text, rest);
      return;
    }
    low_ = *low;
    high_ = *high;
    if (!(low_ < high_) || !std::isfinite(low_) || !std::isfinite(high_))
      fail_option("--random", text, "expected a smaller number before .. than behind");
    if (is_log_ && low_ <= 0) fail_option("--random", text, "expected numbers more than 0 for log:");
    if (is_whole_ && (low_ != std::floor(low_) || high_ != std::floor(high_) || std::fabs(low_) > 1e15 ||
                      std::fabs(high_) > 1e15))
      fail_option("--random", text, "expected whole numbers for int:");
  }

  std::string draw(const RandomKey& random) const {
    if (!choices_.empty()) return choices_[random.below(choices_.size())];
    if (is_whole_)
      return std::to_string(static_cast<int64_t>(low_) +
                            static_cast<int64_t>(random.below(static_cast<uint64_t>(high_ - low_) + 1)));
    const double share = random.uniform();
    const double value = is_log_ ? std::exp(std::log(low_) + share * (std::log(high_) - std::log(low_)))
                                 : low_ + share * (high_ - low_);
    std::string text = formatted("%.4g", value);
    if (const double rounded = std::stod(text); rounded < low_ || rounded > high_)
      text = formatted("%.17g", value);
    return text.find_first_of(".en") == text.npos ? text + ".0" : text;  // a number of the recipe, no integer
  }

  std::string key;

 private:
  bool is_log_ = false, is_whole_ = false;
  double low_ = 0, high_ = 0;
  std::vector<std::string> choices_;
};

void require_new_key(const std::vector<std::string>& keys, const std::string& key) {
  if (std::ranges::count(keys, key) > 0) throw UserError(shown(key) + ": the sweep has this key twice");
}

// Every setting with every value.
std::vector<Assignments> every_combination(const std::vector<Assignments>& settings, const std::string& key,
                                           const std::vector<std::string>& values) {
  std::vector<Assignments> all;
  for (const Assignments& setting : settings)
    for (const std::string& value : values) {
      all.push_back(setting);
      all.back().emplace_back(key, value);
    }
  if (all.size() > kMostTrials) throw UserError("the sweep would have more than 10,000 trials");
  return all;
}

}  // namespace

std::vector<Assignments> SearchSpace::settings() const {
  if (grid.empty() && random.empty())
    throw UserError("expected what to vary: --grid KEY=A,B,C or --random KEY=LOW..HIGH with -n N");
  if (random.empty() != (draws == 0))
    throw UserError(random.empty() ? "-n: expected --random, of whose keys it is the number of draws"
                                   : "--random: expected -n N, the number of draws");
  std::vector<std::string> keys;
  std::vector<Assignments> settings(1);
  for (const std::string& text : grid) {
    const auto [key, list] = split_at_equals("--grid", text, "KEY=A,B,C");
    require_new_key(keys, key);
    keys.push_back(key);
    settings = every_combination(settings, key, values_of("--grid", text, list));
  }
  std::vector<Distribution> distributions;
  for (const std::string& text : random) {
    distributions.emplace_back(text);
    require_new_key(keys, distributions.back().key);
    keys.push_back(distributions.back().key);
  }
  std::vector<Assignments> all;
  for (const Assignments& setting : settings)
    for (int64_t n = 0; n < std::max<int64_t>(draws, 1); ++n) {
      Assignments drawn = setting;
      for (const Distribution& distribution : distributions)
        drawn.emplace_back(
            distribution.key,
            distribution.draw(RandomKey(seed, distribution.key).fold_in(static_cast<uint64_t>(n))));
      if (std::ranges::count(all, drawn) == 0) all.push_back(drawn);
      if (all.size() > kMostTrials) throw UserError("the sweep would have more than 10,000 trials");
    }
  return all;
}

std::string name_of(const Assignments& setting) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : setting) keys.push_back(key);
  std::string name;
  for (const auto& [key, value] : setting)
    name += (name.empty() ? "" : ",") + short_name(key, keys) + '=' + value;
  std::string folder;
  for (const char c : name) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                          std::string_view("=,._+-").find(c) != std::string_view::npos;
    if (is_plain)
      folder += c;
    else if (!folder.empty() && std::string_view("-=,").find(folder.back()) == std::string_view::npos)
      folder += '-';
  }
  while (!folder.empty() && folder.back() == '-') folder.pop_back();
  return folder.substr(0, kMostOfName);
}

}  // namespace tutti
