#pragma once

#include <stdexcept>
#include <string>

#include "runtime/rank_end.h"

namespace tutti {

// A position in a file of the user; line 0 is the whole file.
struct Position {
  std::string file;
  int line = 0;

  std::string text() const;  // "digits.toml:12"
};

// An error that may end a run, and how the run ends by it.
class RunError : public std::runtime_error {
 public:
  RunError(EndKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  EndKind kind() const { return kind_; }

 private:
  EndKind kind_;
};

// A mistake of the user. `what()` is the whole message: file:line, key and value, and the expected value.
// Caught once, in cli: prints the message on rank 0 and exits with 2.
class UserError : public RunError {
 public:
  explicit UserError(const std::string& message, EndKind kind = EndKind::kUserError)
      : RunError(kind, message) {}
  UserError(const Position& position, const std::string& message);
};

// A failure of the environment: disk full, torn file, a rank lost. The caller decides how to recover.
class OperatingError : public RunError {
 public:
  explicit OperatingError(const std::string& message, EndKind kind = EndKind::kOperatingError)
      : RunError(kind, message) {}
};

// The end of a rank that fails with this error.
RankEnd end_by(const std::exception& error);

// The text of the exception being handled, of any type. Call within a catch block.
std::string handled_error();

// "rank 1: what went wrong"; a text that already begins with this rank is returned unchanged.
std::string rank_message(int rank, const std::string& what);

// The candidate nearest to `name` by edit distance, or "" if none is near.
template <class Names>
std::string nearest_name(const std::string& name, const Names& candidates);

int edit_distance(const std::string& a, const std::string& b);

template <class Names>
std::string nearest_name(const std::string& name, const Names& candidates) {
  std::string best;
  int best_distance = static_cast<int>(name.size()) / 2 + 1;
  for (const auto& candidate : candidates) {
    const int distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line, const std::string& why);

}  // namespace tutti

// Checks for programming errors, also in release builds. `why` is evaluated only on failure.
#define TUTTI_ASSERT(condition, why)                                                  \
  do {                                                                                \
    if (!(condition)) ::tutti::assertion_failed(#condition, __FILE__, __LINE__, why); \
  } while (false)
