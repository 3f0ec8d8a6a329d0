#include "runtime/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

namespace tutti {

std::string Position::text() const { return line > 0 ? file + ":" + std::to_string(line) : file; }

UserError::UserError(const Position& position, const std::string& message)
    : std::runtime_error(position.file.empty() ? message : position.text() + ": " + message) {}

std::string handled_error() try { throw; } catch (const std::exception& error) {
  return error.what();
} catch (...) {
  return "an unknown exception";
}

std::string rank_message(int rank, const std::string& what) {
  const std::string who = "rank " + std::to_string(rank);
  return what.starts_with(who + ' ') ? what : who + ": " + what;
}

// Levenshtein's, one row at a time.
int edit_distance(const std::string& a, const std::string& b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = std::exchange(row[0], static_cast<int>(i));
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

void assertion_failed(const char* condition, const char* file, int line, const std::string& why) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s (%s)\n", file, line, condition, why.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace tutti
