#pragma once

#include <stdexcept>
#include <string>

namespace tutti {

// A place in a file that a user wrote; line 0 stands for the file as a whole.
struct Position {
  std::string file;
  int line = 0;

  std::string text() const;  // "digits.toml:12"
};

// What a user did wrong. `what()` is the whole message: file:line, key and value, what was expected.
// Caught once, in cli, which prints it on rank 0 and exits with 2.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  UserError(const Position& position, const std::string& message);
};

// The outside failed (disk full, torn file, a rank lost); the caller decides what is lost by it.
class OperatingError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Within a catch: what the exception says, of whatever type it is.
std::string handled_error();

// "rank 1: what went wrong"; a text that begins with this rank already stays as it is.
std::string rank_message(int rank, const std::string& what);

// The nearest of `candidates` to `name` by edit distance, or "" when none is near.
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

// The programmer's errors; on in release. `why` is evaluated only when it fails.
#define TUTTI_ASSERT(condition, why)                                                  \
  do {                                                                                \
    if (!(condition)) ::tutti::assertion_failed(#condition, __FILE__, __LINE__, why); \
  } while (false)
