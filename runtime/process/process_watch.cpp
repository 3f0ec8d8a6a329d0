#include "runtime/process/process_watch.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "runtime/process/watchdog.h"

namespace tutti {
namespace {

constexpr timespec kLookPause{0, 50'000'000};

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

void hold_stop_signals() {
  const sigset_t set = watched_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);  // a reader of the progress that leaves does not end the training
  signal(SIGXFSZ, SIG_IGN);  // nor does a limit on the size of files: it is like a full disk
}

ProcessWatch::ProcessWatch(Scheduler& scheduler, std::function<void()> stop, int rank,
                           std::function<void()> last_words)
    : scheduler_(scheduler), stop_(std::move(stop)), rank_(rank), last_words_(std::move(last_words)) {
  thread_ = std::thread([this] { watch(); });
}

ProcessWatch::~ProcessWatch() {
  over_ = true;
  thread_.join();
  if (speaking_.joinable()) speaking_.join();
}

void ProcessWatch::watch() {
  const sigset_t set = watched_signals();
  TimePoint aborted_at = kNever;
  while (!over_) {
    const int signal = sigtimedwait(&set, nullptr, &kLookPause);
    if (signal > 0) signalled(signal);
    const TimePoint now = std::chrono::steady_clock::now();
    speak_in_time(now);
    if (!scheduler_.aborted()) continue;
    if (aborted_at == kNever) aborted_at = now;
    if (now - aborted_at >= kGrace) end_by_force();
  }
}

// Once; on a thread of its own, since the watch goes on.
void ProcessWatch::speak_in_time(TimePoint now) {
  if (stop_asked_at_ == kNever || now - stop_asked_at_ < kStopGrace || !last_words_ || speaking_.joinable())
    return;
  speaking_ = std::thread(last_words_);
}

void ProcessWatch::end_by_force() {
  if (last_words_) run_with_timeout(kLastWords, last_words_);
  std::fprintf(stderr, "error: rank %d: ends by force: an actor does not return\n", rank_);
  _exit(1);
}

void ProcessWatch::signalled(int signal) {
  if (signal == SIGINT && ++interrupts_ > 1) {
    scheduler_.abort("interrupted twice");
    return;
  }
  if (signal == SIGTERM && stop_asked_at_ == kNever) stop_asked_at_ = std::chrono::steady_clock::now();
  stop_();
}

}  // namespace tutti
