#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "runtime/rank_end.h"

namespace tutti {

// Characters of a line; column 0 is the whole line.
struct Columns {
  int first = 0;  // from 1
  int count = 1;
};

// A position in a file of the user, or of an option of the command line; line 0 is the whole file. For a
// value, also the place of its key.
struct Position {
  std::string file;
  int line = 0;
  Columns columns = {}, key_columns = {};
  std::shared_ptr<const std::string> source = nullptr;  // the file's text, or the option; null = not known

  std::string text() const;  // "digits.toml:12"
  // The line and a caret below, each on a line that begins with a line break; "" if unknown.
  std::string excerpt() const;
  Position key_position() const;
};

// An error that may end a run, and the way in which the run ends.
class RunError : public std::runtime_error {
 public:
  RunError(EndKind kind, const std::string& message) : RunError(kind, {}, message) {}
  // The text: position, message, excerpt.
  RunError(EndKind kind, const Position& position, const std::string& message);

  EndKind kind() const { return kind_; }
  const Position& position() const { return position_; }
  const std::string& message() const { return message_; }  // without position and excerpt
  std::string headline() const;                            // without the excerpt

 private:
  EndKind kind_;
  Position position_;
  std::string message_;
};

// A mistake of the user. `what()` is the whole message: file:line, key and value, the expected value, and if
// known, the line with a caret. Caught once, in cli: prints the message on rank 0 and exits with 2.
class UserError : public RunError {
 public:
  explicit UserError(const std::string& message, EndKind kind = EndKind::kUserError)
      : RunError(kind, message) {}
  UserError(const Position& position, const std::string& message)
      : RunError(EndKind::kUserError, position, message) {}
};

// A failure of the environment: disk full, torn file, a rank lost. The caller decides how to recover.
class OperatingError : public RunError {
 public:
  explicit OperatingError(const std::string& message, EndKind kind = EndKind::kOperatingError)
      : RunError(kind, message) {}
  OperatingError(const Position& position, const std::string& message)
      : RunError(EndKind::kOperatingError, position, message) {}
};

// The end of a rank that fails with this error.
RankEnd end_by(const std::exception& error);

// The text of the exception being handled, of any type. Call within a catch block.
std::string handled_error();

// "rank 1: what went wrong"; a text that already begins with this rank is returned unchanged.
std::string rank_message(int rank, const std::string& what);

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line, const std::string& why);

}  // namespace tutti

// Checks for programming errors, also in release builds. `why` is evaluated only on failure.
#define TUTTI_ASSERT(condition, why)                                                  \
  do {                                                                                \
    if (!(condition)) ::tutti::assertion_failed(#condition, __FILE__, __LINE__, why); \
  } while (false)
