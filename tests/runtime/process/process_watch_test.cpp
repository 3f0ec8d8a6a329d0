#include "runtime/process/process_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "runtime/actor/scheduler.h"
#include "runtime/error.h"
#include "runtime/process/command_output.h"

namespace tutti {
namespace {

// Ends the run, and does not return itself.
class StuckActor final : public Actor {
 public:
  void start(Context& context) override {
    context.abort({EndKind::kInterrupted, "this test"});
    for (;;) pause();
  }
  void receive(Context&, Envelope&) override {}
};

void run_stuck(const std::function<void()>& last_words) {
  ThreadScheduler scheduler;
  const ActorId id = scheduler.reserve("stuck", 0);
  scheduler.install(id, std::make_unique<StuckActor>());
  const ProcessWatch watch(scheduler, 0, {.stop = [] {}, .report = last_words});
  scheduler.run();
}

TEST(ProcessWatchDeathTest, AStuckProcessEndsByForceAfterItsLastWords) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_stuck([] { std::fputs("last words\n", stderr); }), testing::ExitedWithCode(1),
              "last words\nerror: rank 0: this test\nerror: rank 0: ends by force");
}

// Never ends, though it is asked to.
class BusyActor final : public Actor {
 public:
  explicit BusyActor(int signal) : signal_(signal) {}
  void start(Context&) override {
    kill(getpid(), signal_);
    for (;;) pause();
  }
  void receive(Context&, Envelope&) override {}

 private:
  int signal_;
};

void run_busy(int signal) {
  ::signal(signal, SIG_DFL);  // which nohup may have changed
  hold_stop_signals();
  ThreadScheduler scheduler;
  const ActorId id = scheduler.reserve("busy", 0);
  scheduler.install(id, std::make_unique<BusyActor>(signal));
  const ProcessWatch watch(scheduler, 0, {.stop = [] {}, .report = [] { _exit(7); }});
  scheduler.run();
}

TEST(ProcessWatchDeathTest, ABusyProcessSaysItsLastWordsBeforeItIsKilled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU})
    EXPECT_EXIT(run_busy(signal), testing::ExitedWithCode(7), "") << signal;
}

// Says whether the signal asks a run to stop that has not begun.
[[noreturn]] void hold(int signal, bool ignored) {
  if (ignored) ::signal(signal, SIG_IGN);
  hold_stop_signals();
  kill(getpid(), signal);
  try {
    require_no_held_stop("this was tested");
  } catch (const OperatingError& error) {
    std::fprintf(stderr, "%s", error.what());
    _exit(stop_asked() && error.kind() == EndKind::kInterrupted ? 1 : 2);
  }
  _exit(stop_asked() ? 3 : 0);
}

TEST(HeldSignalsDeathTest, StopARunThatHasNotBegun) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU})
    EXPECT_EXIT(hold(signal, false), testing::ExitedWithCode(1), "stopped while this was tested") << signal;
}

TEST(HeldSignalsDeathTest, IgnoredSignalsDoNot) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int signal : {SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU})
    EXPECT_EXIT(hold(signal, true), testing::ExitedWithCode(0), "") << signal;
}

[[noreturn]] void read_silent_command() {
  hold_stop_signals();
  CommandOutput output("(sleep 0.2; kill -TERM $PPID); exec sleep 1000");
  char bytes[10];
  try {
    output.read(bytes);
  } catch (const OperatingError& error) {
    std::fprintf(stderr, "%s", error.what());
  }
  _exit(4);
}

TEST(HeldSignalsDeathTest, AreHeardWhileACommandIsSilent) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(read_silent_command(), testing::ExitedWithCode(4), "stopped while a command was read");
}

TEST(ProcessWatchDeathTest, LastWordsThatAreStuckAreNotWaitedFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto stuck = [] {
    for (;;) pause();
  };
  EXPECT_EXIT(run_stuck(stuck), testing::ExitedWithCode(1), "ends by force");
}

}  // namespace
}  // namespace tutti
