#pragma once

#include <string>
#include <vector>

#include "runtime/log.h"

namespace tutti {

// Keeps the warnings and errors of a rank's log among those of all ranks, and drops the rest. Used under the
// run_token.
class WarningsLog final : public Log {
 public:
  WarningsLog(int rank, std::vector<std::string>& of_all)
      : prefix_("rank " + std::to_string(rank) + ": "), of_all_(of_all) {}

  void write(LogLevel level, const std::string& line) override {
    if (level >= LogLevel::kWarning) of_all_.push_back(prefix_ + line);
  }
  void flush() override {}

 private:
  std::string prefix_;
  std::vector<std::string>& of_all_;
};

}  // namespace tutti
