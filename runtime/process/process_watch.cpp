#include "runtime/process/process_watch.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/error.h"

namespace tutti {

bool run_with_timeout(Nanoseconds limit, std::function<void()> work) {
  const auto done = std::make_shared<std::atomic<bool>>(false);
  const auto all = [done, work = std::move(work)] {
    work();
    *done = true;
  };
  try {
    std::thread(all).detach();
  } catch (const std::system_error&) {  // no thread can be created
    all();
  }
  const TimePoint until = std::chrono::steady_clock::now() + limit;
  while (!*done && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return *done;
}

StartWatchdog::StartWatchdog(int rank, std::string doing, Nanoseconds limit) {
  const auto watch = [this, rank, doing = std::move(doing), limit] {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, limit, [this] { return over_; })) return;
    std::fprintf(stderr, "error: rank %d: %s takes longer than %.0f s: another rank hangs or never started\n",
                 rank, doing.c_str(), seconds(limit));
    std::fflush(nullptr);
    _exit(1);
  };
  try {
    thread_ = std::thread(watch);
  } catch (const std::system_error&) {  // no thread can be created: the call has no limit
  }
}

StartWatchdog::~StartWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

namespace {

constexpr timespec kPollInterval{0, 50'000'000};

bool is_ignored(int signal) {
  struct sigaction action {};
  ::sigaction(signal, nullptr, &action);
  return !(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_IGN;
}

// A blocked signal is pending even where it is ignored.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  for (const int signal : {SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU})
    if (!is_ignored(signal)) sigaddset(&set, signal);
  return set;
}

// Of the process, as its signals are.
struct StopSignals {
  std::atomic<int> watches{0};  // that receive them
  std::atomic<bool> received{false};
};

StopSignals& stop_signals() {
  static StopSignals all;
  return all;
}

bool holds_stop() {
  if (stop_signals().watches > 0) return false;
  sigset_t pending, both;
  const sigset_t watched = watched_signals();
  sigpending(&pending);
  sigandset(&both, &pending, &watched);
  return !sigisemptyset(&both);
}

}  // namespace

bool stop_asked() { return stop_signals().watches > 0 ? stop_signals().received.load() : holds_stop(); }

void require_no_held_stop(const std::string& doing) {
  if (holds_stop()) throw OperatingError("stopped while " + doing, EndKind::kInterrupted);
}

void hold_stop_signals() {
  const sigset_t set = watched_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);  // a closed standard output does not end the training
  signal(SIGXFSZ, SIG_IGN);  // a file size limit is handled like a full disk
}

ProcessWatch::ProcessWatch(Scheduler& scheduler, int rank, Calls calls)
    : scheduler_(scheduler), rank_(rank), calls_(std::move(calls)) {
  if (stop_signals().watches++ == 0) stop_signals().received = false;
  thread_ = std::thread([this] { watch(); });
}

ProcessWatch::~ProcessWatch() {
  over_ = true;
  thread_.join();
  --stop_signals().watches;
  if (reporting_.joinable()) reporting_.join();
}

void ProcessWatch::watch() {
  const sigset_t set = watched_signals();
  TimePoint aborted_at = kNever;
  while (!over_) {
    const int signal = sigtimedwait(&set, nullptr, &kPollInterval);
    if (signal > 0) handle_signal(signal);
    const TimePoint now = std::chrono::steady_clock::now();
    write_report_after_stop(now);
    if (!scheduler_.aborted()) continue;
    if (aborted_at == kNever) aborted_at = now;
    if (now - aborted_at >= kGrace) end_by_force();
  }
}

// Reports once, on another thread, since the watch must continue.
void ProcessWatch::write_report_after_stop(TimePoint now) {
  if (stop_asked_at_ == kNever || now - stop_asked_at_ < kStopGrace || !calls_.report ||
      reporting_.joinable())
    return;
  try {
    reporting_ = std::thread(calls_.report);
  } catch (const std::system_error&) {  // no thread can be created
    calls_.report = nullptr;
  }
}

void ProcessWatch::end_by_force() {
  if (calls_.report) run_with_timeout(kReportTimeout, calls_.report);
  std::fprintf(stderr, "error: rank %d: %s\n", rank_, scheduler_.end().reason.c_str());
  std::fprintf(stderr, "error: rank %d: ends by force: an actor does not return\n", rank_);
  _exit(1);
}

void ProcessWatch::handle_signal(int signal) {
  if (signal == SIGINT && ++interrupts_ > 1) {
    scheduler_.abort({EndKind::kInterrupted, "interrupted twice"});
    return;
  }
  stop_signals().received = true;
  if (signal != SIGINT && stop_asked_at_ == kNever) stop_asked_at_ = std::chrono::steady_clock::now();
  calls_.stop();
}

}  // namespace tutti
