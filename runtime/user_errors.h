#pragma once

#include <vector>

#include "runtime/error.h"

namespace tutti {

// Several mistakes of the user. `what()` has all messages, in the order of lines, and their number.
class UserErrors final : public UserError {
 public:
  explicit UserErrors(std::vector<UserError> errors);
  const std::vector<UserError>& each() const { return errors_; }

 private:
  std::vector<UserError> errors_;
};

// Collects the mistakes of independent parts, so that the user learns of all mistakes at once.
class MistakeCollector {
 public:
  // Runs `work` and keeps its UserErrors; other exceptions pass, and errors that all ranks have agreed on.
  // True without an error.
  template <class Work>
  bool collect(const Work& work) {
    try {
      work();
      return true;
    } catch (const UserError& error) {
      if (error.kind() != EndKind::kUserError) throw;
      add(error);
      return false;
    }
  }
  void add(const UserError& error);

  bool empty() const { return errors_.empty(); }
  void throw_all() const;  // UserError, UserErrors if there are several; returns if there is none

 private:
  std::vector<UserError> errors_;
};

}  // namespace tutti
