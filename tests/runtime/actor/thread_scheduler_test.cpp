#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

#include "runtime/actor/scheduler.h"
#include "tests/runtime/actor/cast.h"
#include "tests/runtime/actor/scheduler_contract.h"
#include "tests/runtime/watchdog.h"

namespace tutti {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

INSTANTIATE_TYPED_TEST_SUITE_P(ThreadScheduler, SchedulerTest, ThreadScheduler);

class ThreadSchedulerTest : public testing::Test {
  Watchdog watchdog_;
};

double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto to_seconds = [](const timeval& t) { return t.tv_sec + 1e-6 * t.tv_usec; };
  return to_seconds(usage.ru_utime) + to_seconds(usage.ru_stime);
}

Script ends_after(Nanoseconds time) {
  return {.start = [time](Context& context) {
    context.sleep(time);
    context.abort({EndKind::kInterrupted, "over"});
  }};
}

TEST_F(ThreadSchedulerTest, IdleActorsUseNoProcessor) {
  ThreadScheduler scheduler;
  for (int i = 0; i < 10; ++i) play(scheduler, scheduler.reserve("idle", i), {});
  play(scheduler, scheduler.reserve("timer", 0), ends_after(milliseconds(500)));
  const double before = cpu_seconds();
  run_error(scheduler);
  EXPECT_LT(cpu_seconds() - before, 0.05);
}

TEST_F(ThreadSchedulerTest, LookingEvery100MicrosecondsUsesLittleProcessor) {
  ThreadScheduler scheduler;
  play(scheduler, scheduler.reserve("sync", 0), {.idle = [](Context& context) -> std::optional<TimePoint> {
         return context.now() + microseconds(100);
       }});
  play(scheduler, scheduler.reserve("timer", 0), ends_after(milliseconds(500)));
  const double before = cpu_seconds();
  run_error(scheduler);
  EXPECT_LT(cpu_seconds() - before, 0.2);
}

TEST_F(ThreadSchedulerTest, ThreadsAreNamedAfterTheirActors) {
  ThreadScheduler scheduler;
  char name[16];
  play(scheduler, scheduler.reserve("checkpointer", 17), {.start = [&](Context& context) {
         pthread_getname_np(pthread_self(), name, sizeof name);
         context.stop();
       }});
  scheduler.run();
  EXPECT_STREQ(name, "17.checkpointer");
}

TEST_F(ThreadSchedulerTest, ActorsRunSideBySide) {
  ThreadScheduler scheduler;
  std::atomic<int> inside{0};
  for (int i = 0; i < 2; ++i) {
    play(scheduler, scheduler.reserve("actor", i), {.start = [&](Context& context) {
           ++inside;
           while (inside < 2) std::this_thread::yield();
           context.stop();
         }});
  }
  scheduler.run();
}

TEST_F(ThreadSchedulerTest, APostFromOutsideWakesASleepingActor) {
  ThreadScheduler scheduler;
  const ActorId sleeper = scheduler.reserve("sleeper", 0);
  play(scheduler, sleeper, {.receive = [](Context& context, Envelope& envelope) {
         EXPECT_EQ(envelope.from, ActorId{});
         context.stop();
       }});
  std::thread outside([&] {
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_TRUE(scheduler.post(sleeper, Number{1}));
  });
  scheduler.run();
  outside.join();
}

// Every kind of message at once, through mailboxes of one place: a lost wake-up shows as a hang.
TEST_F(ThreadSchedulerTest, NoWakeUpIsLostUnderLoad) {
  constexpr int kAskers = 3;
  constexpr int kRounds = 3000;
  ThreadScheduler scheduler;
  int64_t numbers = 0;
  int left = kAskers;
  const ActorId sage = scheduler.reserve("sage", 0, {.requests = 1});
  play(scheduler, sage, {.receive = [&](Context& context, Envelope& envelope) {
         if (auto* question = envelope.message.get_if<Question>()) {
           context.reply(envelope, Answer{question->value + 1});
           if (question->value == kRounds - 1 && --left == 0) context.stop();
         } else {
           numbers += envelope.message.get_if<Number>()->value;
         }
       }});
  for (int i = 0; i < kAskers; ++i) {
    play(scheduler, scheduler.reserve("asker", i), {.start = [&](Context& context) {
           for (int round = 0; round < kRounds; ++round) {
             context.send(sage, Number{1});
             EXPECT_EQ(context.ask<Answer>(sage, Question{round}).value, round + 1);
           }
           context.stop();
         }});
  }
  scheduler.run();
  EXPECT_EQ(numbers, kAskers * kRounds);
}

// Never returns from its first message.
Script hangs() {
  return {.receive = [](Context&, Envelope&) {
    for (;;) pause();
  }};
}

// An abandoned thread uses it as long as the process lives.
ThreadScheduler& lasting_scheduler() { return *new ThreadScheduler; }

TEST_F(ThreadSchedulerTest, AHangingActorIsAbandonedOnceAllOthersHaveEnded) {
  ThreadScheduler& scheduler = lasting_scheduler();
  const auto held = std::make_shared<int>(0);
  const ActorId stuck = scheduler.reserve("stuck", 0);
  scheduler.abandon_after(stuck, "the stuck one", milliseconds(50));
  play(scheduler, stuck, hangs());
  TimePoint others_ended;
  play(scheduler, scheduler.reserve("other", 0), {.start = [&, held](Context& context) {
         context.send(stuck, Number{1});
         context.sleep(milliseconds(300));
         others_ended = context.now();
         context.stop();
       }});
  scheduler.run();
  EXPECT_GE(scheduler.now() - others_ended, milliseconds(50));
  EXPECT_THAT(scheduler.abandoned(), testing::ElementsAre("the stuck one"));
  EXPECT_EQ(held.use_count(), 2) << "it may still look at what others hold";
}

TEST_F(ThreadSchedulerTest, AHangingActorDoesNotHideTheReasonOfAFailure) {
  ThreadScheduler& scheduler = lasting_scheduler();
  const ActorId stuck = scheduler.reserve("stuck", 0);
  scheduler.abandon_after(stuck, "the stuck one", std::chrono::hours(1));
  play(scheduler, stuck, hangs());
  play(scheduler, scheduler.reserve("other", 0), {.start = [&](Context& context) {
         context.send(stuck, Number{1});
         context.sleep(milliseconds(100));
         throw OperatingError("no room");
       }});
  EXPECT_THAT([&] { scheduler.run(); },
              testing::ThrowsMessage<OperatingError>(testing::HasSubstr("no room")));
}

TEST_F(ThreadSchedulerTest, AnAbandonedActorHasOneTimeoutForAllItsMessages) {
  constexpr int kMany = 200;
  ThreadScheduler& scheduler = lasting_scheduler();
  const ActorId slow = scheduler.reserve("slow", 0);
  scheduler.abandon_after(slow, "the slow one", milliseconds(500));
  play(scheduler, slow,
       {.receive = [](Context&, Envelope&) { std::this_thread::sleep_for(milliseconds(100)); }});
  TimePoint others_ended;
  play(scheduler, scheduler.reserve("other", 0), {.start = [&](Context& context) {
         for (int i = 0; i < kMany; ++i) context.send(slow, Number{i});
         others_ended = context.now();
         context.stop();
       }});
  scheduler.run();
  EXPECT_GE(scheduler.now() - others_ended, milliseconds(500));
  EXPECT_LT(scheduler.now() - others_ended, kMany * milliseconds(100) / 2);
  EXPECT_THAT(scheduler.abandoned(), testing::ElementsAre("the slow one"));
}

TEST_F(ThreadSchedulerTest, AHangingActorTakesNoTimeFromAnother) {
  ThreadScheduler& scheduler = lasting_scheduler();
  const ActorId stuck = scheduler.reserve("stuck", 0), slow = scheduler.reserve("slow", 0);
  scheduler.abandon_after(stuck, "the stuck one", milliseconds(50));
  scheduler.abandon_after(slow, "the slow one", std::chrono::seconds(60));
  play(scheduler, stuck, hangs());
  bool done = false;
  play(scheduler, slow, {.receive = [&](Context& context, Envelope&) {
         std::this_thread::sleep_for(milliseconds(500));
         done = true;
         context.stop();
       }});
  play(scheduler, scheduler.reserve("other", 0), {.start = [&](Context& context) {
         context.send(stuck, Number{1});
         context.send(slow, Number{1});
         context.stop();
       }});
  scheduler.run();
  EXPECT_TRUE(done);
  EXPECT_THAT(scheduler.abandoned(), testing::ElementsAre("the stuck one"));
}

}  // namespace
}  // namespace tutti
