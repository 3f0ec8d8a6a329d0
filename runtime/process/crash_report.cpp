#include "runtime/process/crash_report.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string_view>

namespace tutti {
namespace {

constexpr std::size_t kMaxReported = 100;
constexpr std::size_t kActorWidth = 12;
constexpr std::size_t kSecondsWidth = 9;

enum class Cause {
  kInstruction,  // is executed again when the handler returns
  kFault,
  kOther  // may have a handler that does not end the process
};

struct FatalSignal {
  int number;
  std::string_view name;
  Cause cause;
  struct sigaction before {};
};

struct Watch {
  std::array<FatalSignal, 14> signals = {{{SIGSEGV, "SIGSEGV", Cause::kInstruction},
                                          {SIGBUS, "SIGBUS", Cause::kInstruction},
                                          {SIGFPE, "SIGFPE", Cause::kInstruction},
                                          {SIGILL, "SIGILL", Cause::kInstruction},
                                          {SIGABRT, "SIGABRT", Cause::kFault},
                                          {SIGXCPU, "SIGXCPU", Cause::kOther},
                                          {SIGXFSZ, "SIGXFSZ", Cause::kOther},
                                          {SIGSYS, "SIGSYS", Cause::kOther},
                                          {SIGTRAP, "SIGTRAP", Cause::kOther},
                                          {SIGQUIT, "SIGQUIT", Cause::kOther},
                                          {SIGHUP, "SIGHUP", Cause::kOther},
                                          {SIGUSR1, "SIGUSR1", Cause::kOther},
                                          {SIGUSR2, "SIGUSR2", Cause::kOther},
                                          {SIGALRM, "SIGALRM", Cause::kOther}}};
  std::array<std::atomic<const CrashReport*>, 64> reports{};
  std::atomic<bool> begun{false}, done{false};
  std::atomic<BusErrorHandler> bus_errors{nullptr};
};

// Global, as signal handlers are.
Watch& fatal_watch() {
  static Watch watch;
  return watch;
}

// Formats a line without allocating memory.
class SignalLine {
 public:
  SignalLine& put(std::string_view text) {
    const std::size_t size = std::min(text.size(), text_.size() - size_);
    std::copy_n(text.data(), size, text_.data() + size_);
    size_ += size;
    return *this;
  }
  SignalLine& put(int64_t number, std::size_t at_least = 1) {
    char digits[24];
    std::size_t at = sizeof digits;
    uint64_t rest = number < 0 ? -static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    do digits[--at] = static_cast<char>('0' + rest % 10);
    while ((rest /= 10) > 0 || sizeof digits - at < at_least);
    if (number < 0) put("-");
    return put(std::string_view(digits + at, sizeof digits - at));
  }
  SignalLine& pad_to(std::size_t size) {
    while (size_ < std::min(size, text_.size())) text_[size_++] = ' ';
    return *this;
  }
  std::size_t size() const { return size_; }
  std::string_view text() const { return {text_.data(), size_}; }

  void write_to(int file) {
    size_ = std::min(size_, text_.size() - 1);
    put("\n");
    std::string_view rest = text();
    while (!rest.empty()) {
      const ssize_t written = ::write(file, rest.data(), rest.size());
      if (written < 0 && errno != EINTR) return;
      rest.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
    }
  }

 private:
  std::array<char, 256> text_;
  std::size_t size_ = 0;
};

TimePoint steady_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return TimePoint(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

std::string_view name_of_signal(int signal) {
  for (const FatalSignal& watched : fatal_watch().signals)
    if (watched.number == signal) return watched.name;
  return "";
}

void sleep_1ms() {
  const timespec millisecond{0, 1'000'000};
  ::nanosleep(&millisecond, nullptr);
}

// Writes the reports once. Other threads that fail meanwhile wait, so that they do not end the process.
void report_once(int signal) {
  Watch& watch = fatal_watch();
  if (watch.begun.exchange(true)) {
    for (int waited_ms = 0; waited_ms < 500 && !watch.done; ++waited_ms) sleep_1ms();
    return;
  }
  for (const auto& report : watch.reports)
    if (const CrashReport* crash_report = report.load()) crash_report->write(signal);
  watch.done = true;
}

// Restores the previous handler. A faulty instruction raises its signal again when this function returns;
// other signals are raised here.
void on_fatal_signal(int signal, siginfo_t* info, void*) {
  const int error = errno;
  const BusErrorHandler handles = fatal_watch().bus_errors;
  if (signal == SIGBUS && handles != nullptr && handles(*info)) return;
  report_once(signal);
  bool repeats = false;
  for (const FatalSignal& watched : fatal_watch().signals) {
    if (watched.number != signal) continue;
    ::sigaction(signal, &watched.before, nullptr);
    repeats = watched.cause == Cause::kInstruction && info->si_code > 0;
  }
  if (!repeats) ::raise(signal);
  errno = error;
}

bool is_default(const struct sigaction& action) {
  return !(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_DFL;
}

void watch_fatal_signals() {
  static const bool once = [] {
    struct sigaction action {};
    action.sa_sigaction = on_fatal_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigfillset(&action.sa_mask);
    for (FatalSignal& watched : fatal_watch().signals) {
      ::sigaction(watched.number, nullptr, &watched.before);
      if (watched.cause != Cause::kOther || is_default(watched.before))
        ::sigaction(watched.number, &action, nullptr);
    }
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace

void set_bus_error_handler(BusErrorHandler handler) {
  fatal_watch().bus_errors = handler;
  watch_fatal_signals();
}

CrashReport::CrashReport(const Recorder& recorder, int rank, const std::string& path)
    : recorder_(recorder),
      rank_(rank),
      file_(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666)) {
  watch_fatal_signals();
  for (auto& slot : fatal_watch().reports) {
    const CrashReport* none = nullptr;
    if (slot.compare_exchange_strong(none, this)) return;
  }
}

CrashReport::~CrashReport() {
  for (auto& slot : fatal_watch().reports) {
    const CrashReport* self = this;
    slot.compare_exchange_strong(self, nullptr);
  }
  if (file_ >= 0) ::close(file_);
}

void CrashReport::write(int signal) const {
  const int file = file_ >= 0 ? file_ : STDERR_FILENO;
  const TimePoint now = steady_now();
  std::array<TraceEvent, kMaxReported> events;
  const std::size_t count = recorder_.peek(events);
  SignalLine head;
  head.put("rank ").put(rank_).put(" is ended by signal ").put(signal).put(" (").put(name_of_signal(signal));
  head.put("); the last that was done:").write_to(file);
  for (std::size_t i = 0; i < count; ++i) {
    const TraceEvent& event = events[i];
    const int64_t ago_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - event.time).count();
    SignalLine age, line;
    age.put(ago_ms / 1000).put(".").put(ago_ms % 1000, 3);
    line.pad_to(kSecondsWidth - std::min(kSecondsWidth, age.size())).put(age.text()).put(" s ago  ");
    const std::size_t actor_at = line.size();
    line.put(name(actor_of(event.kind))).pad_to(actor_at + kActorWidth).put(" ").put(name(event.kind));
    line.put(" (after step ").put(event.step).put(", ").put(event.detail).put(")").write_to(file);
  }
}

}  // namespace tutti
