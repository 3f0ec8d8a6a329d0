#include "runtime/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <string_view>

#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::size_t kLeastPart = 3;  // letters of a beginning or of a word

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

// "SpeedMonitor", "speed-monitor" and "speed_monitor" are "speed" and "monitor".
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool letter = std::isalnum(static_cast<unsigned char>(name[i])) != 0;
    const bool begins = letter && i > 0 && is_upper(name[i]) && is_lower(name[i - 1]);
    if ((!letter || begins) && !words.back().empty()) words.emplace_back();
    if (letter) words.back() += lower_case(name.substr(i, 1));
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::string plain(std::string_view name) {
  std::string out;
  for (const std::string& word : words_of(name)) out += word;
  return out;
}

std::string initials(std::string_view name) {
  const auto words = words_of(name);
  std::string out;
  if (words.size() > 1)
    for (const std::string& word : words) out += word[0];
  return out;
}

bool begins_with(const std::string& name, const std::string& other) {
  return (other.size() >= kLeastPart && name.starts_with(other)) ||
         (name.size() >= kLeastPart && other.starts_with(name));
}

bool shares_word(std::string_view name, std::string_view other) {
  const auto theirs = words_of(other);
  return std::ranges::any_of(words_of(name), [&](const std::string& word) {
    return word.size() >= kLeastPart && std::ranges::count(theirs, word) > 0;
  });
}

int slips(const std::string& name, const std::string& other) {
  return static_cast<int>(std::max(std::min(name.size(), other.size()), kLeastPart)) / 3;
}

// The candidate of the least cost that is at most `limit`, the first of equals.
std::string cheapest(const std::vector<std::string>& candidates, int limit,
                     const std::function<int(const std::string&)>& cost) {
  std::string best;
  int least = limit + 1;
  for (const std::string& candidate : candidates) {
    const int its = cost(candidate);
    if (its < least) {
      least = its;
      best = candidate;
    }
  }
  return best;
}

}  // namespace

// Levenshtein's, with exchanged neighbours as one edit (optimal string alignment).
int edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<int>> rows(a.size() + 1, std::vector<int>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      int& here = rows[i][j];
      if (i == 0 || j == 0) {
        here = static_cast<int>(i + j);
        continue;
      }
      here = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        here = std::min(here, rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

bool same_name(const std::string& first, const std::string& second) {
  const std::string name = plain(first);
  return !name.empty() && name == plain(second);
}

bool similar_name(const std::string& first, const std::string& second) {
  const std::string a = plain(first), b = plain(second);
  return edit_distance(a, b) <= slips(a, b);
}

std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates) {
  constexpr std::size_t kMaxName = 100;  // a longer one is no name
  const std::string plain_name = plain(name);
  if (plain_name.empty() || name.size() > kMaxName) return "";
  constexpr int kNever = kMaxName * kMaxName;
  const auto edits = [&](const std::string& other) { return edit_distance(plain_name, plain(other)); };
  std::string nearest = cheapest(candidates, kNever - 1, [&](const std::string& other) {
    const int count = edits(other);  // of equals the one that looks most alike
    const int written = std::min<int>(edit_distance(name, other), kMaxName - 1);
    return count <= slips(plain_name, plain(other)) ? count * static_cast<int>(kMaxName) + written : kNever;
  });
  const auto shortest = [&](auto fits) {
    if (nearest.empty())
      nearest = cheapest(candidates, kNever - 1, [&](const std::string& other) {
        return fits(other) ? static_cast<int>(std::min(other.size(), kMaxName)) : kNever;
      });
  };
  shortest([&](const std::string& other) { return begins_with(plain(other), plain_name); });
  shortest([&](const std::string& other) { return shares_word(name, other); });
  shortest([&](const std::string& other) {
    return initials(name) == plain(other) || (plain_name.size() > 1 && initials(other) == plain_name);
  });
  return nearest.empty() ? cheapest(candidates, static_cast<int>(plain_name.size()) / 2, edits) : nearest;
}

}  // namespace tutti
