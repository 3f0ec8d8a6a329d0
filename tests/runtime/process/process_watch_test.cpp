#include "runtime/process/process_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "runtime/actor/scheduler.h"

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
  void start(Context&) override {
    kill(getpid(), SIGTERM);
    for (;;) pause();
  }
  void receive(Context&, Envelope&) override {}
};

void run_busy() {
  hold_stop_signals();
  ThreadScheduler scheduler;
  const ActorId id = scheduler.reserve("busy", 0);
  scheduler.install(id, std::make_unique<BusyActor>());
  const ProcessWatch watch(scheduler, 0, {.stop = [] {}, .report = [] { _exit(7); }});
  scheduler.run();
}

TEST(ProcessWatchDeathTest, ABusyProcessSaysItsLastWordsBeforeItIsKilled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_busy(), testing::ExitedWithCode(7), "");
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
