#pragma once

#include <signal.h>

#include <string>

#include "runtime/recorder.h"

namespace tutti {

// Writes the recorder's last trace events when a signal ends the process: to the log at `path`, or to
// standard error if the log cannot be opened. Then the previous handler of the signal runs, so the process
// ends as without the report. Handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT (also raised by an uncaught
// exception); and SIGQUIT, SIGALRM and others that end a process, unless they were ignored or handled when
// the first CrashReport was made, or are held for a ProcessWatch. A process may have up to 64 reports. A
// thread whose stack overflows needs a SignalStack to report.
class CrashReport {
 public:
  CrashReport(const Recorder& recorder, int rank, const std::string& path);
  ~CrashReport();
  CrashReport(const CrashReport&) = delete;
  CrashReport& operator=(const CrashReport&) = delete;

  // Async-signal-safe.
  void write(int signal) const;

 private:
  const Recorder& recorder_;
  int rank_;
  int file_;
};

// Handles faults that end no process: called in place of a report by the handlers of SIGBUS, true if the
// faulty instruction may be executed again. Async-signal-safe. Set once, before or after the first
// CrashReport.
using BusErrorHandler = bool (*)(const siginfo_t& info);
void set_bus_error_handler(BusErrorHandler handler);

}  // namespace tutti
