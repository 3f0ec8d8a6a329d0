#pragma once

#include <string>

#include "runtime/recorder.h"

namespace tutti {

// While it lives, a signal that ends the process for a fault of its own (SIGSEGV, SIGBUS, SIGFPE, SIGILL,
// SIGABRT, with which an exception that nobody catches ends too) first leaves the last trace events of the
// recorder in the log at `path`; in standard error where that cannot be opened. Then whoever handled the
// signal before has it, so the process ends as it would have. So it is with others that would end it
// (SIGHUP, SIGQUIT, SIGUSR1, SIGXCPU, ...) unless somebody ignores or handles them when the first of these
// begins; SIGTERM and SIGINT are ProcessWatch's. A process may have several; a stack that has overflown
// leaves no room for any.
class CrashReport {
 public:
  CrashReport(const Recorder& recorder, int rank, const std::string& path);
  ~CrashReport();
  CrashReport(const CrashReport&) = delete;
  CrashReport& operator=(const CrashReport&) = delete;

  // For the handler: calls nothing that may not be called there.
  void write(int signal) const;

 private:
  const Recorder& recorder_;
  int rank_;
  int file_;
};

}  // namespace tutti
