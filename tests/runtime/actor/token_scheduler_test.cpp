#include "runtime/actor/token_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <deque>
#include <set>

#include "runtime/error.h"
#include "tests/runtime/actor/cast.h"
#include "tests/runtime/actor/scheduler_contract.h"

namespace tutti {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

INSTANTIATE_TYPED_TEST_SUITE_P(TokenScheduler, SchedulerTest, TokenScheduler);

TokenScheduler::Options seeded(uint64_t seed) { return {.seed = seed, .on_switch = {}}; }

struct ScheduleOutcome {
  uint64_t digest = 0;
  uint64_t passes = 0;
  TimePoint end;
  std::vector<int64_t> order;
  friend bool operator==(const ScheduleOutcome&, const ScheduleOutcome&) = default;
};

// Four writers, of two ranks, race to one reader through a small mailbox, sleeping and asking now and then.
ScheduleOutcome race(uint64_t seed) {
  constexpr int kWriters = 4;
  constexpr int kRounds = 20;
  ScheduleOutcome outcome;
  TokenScheduler scheduler(seeded(seed));
  const ActorId reader = scheduler.reserve("reader", 0, {.requests = 2});
  play(scheduler, reader, {.receive = [&](Context& context, Envelope& envelope) {
         outcome.order.push_back(envelope.from.index);
         if (envelope.slot) context.reply(envelope, Answer{});
         if (outcome.order.size() == 2 * kWriters * kRounds) context.stop();
       }});
  for (int writer = 0; writer < kWriters; ++writer) {
    play(scheduler, scheduler.reserve("writer", writer % 2), {.start = [&, writer](Context& context) {
           for (int round = 0; round < kRounds; ++round) {
             context.send(reader, Number{round});
             if (round % 5 == writer) context.sleep(microseconds(100));
             context.ask<Answer>(reader, Question{round});
           }
           context.stop();
         }});
  }
  scheduler.run();
  outcome.digest = scheduler.delivery_digest();
  outcome.passes = scheduler.run_token_passes();
  outcome.end = scheduler.now();
  return outcome;
}

TEST(TokenSchedulerTest, TheSeedFixesEverything) {
  for (uint64_t seed = 0; seed < 5; ++seed) EXPECT_EQ(race(seed), race(seed));
}

TEST(TokenSchedulerTest, OtherSeedsGiveOtherOrders) {
  std::set<uint64_t> digests;
  for (uint64_t seed = 0; seed < 20; ++seed) digests.insert(race(seed).digest);
  EXPECT_EQ(digests.size(), 20u);
}

TEST(TokenSchedulerTest, OneActorRunsAtATime) {
  TokenScheduler scheduler;
  int inside = 0;
  for (int i = 0; i < 8; ++i) {
    play(scheduler, scheduler.reserve("actor", i), {.start = [&](Context& context) {
           for (int round = 0; round < 50; ++round) {
             EXPECT_EQ(++inside, 1);
             sched_yield();
             --inside;
             context.sleep(microseconds(round % 3));
           }
           context.stop();
         }});
  }
  scheduler.run();
}

TEST(TokenSchedulerTest, SleepingAnHourTakesNoTime) {
  TokenScheduler scheduler;
  const auto before = std::chrono::steady_clock::now();
  play(scheduler, scheduler.reserve("sleeper", 0), {.start = [](Context& context) {
         const TimePoint start = context.now();
         context.sleep(hours(1));
         EXPECT_EQ(context.now() - start, hours(1));
         context.stop();
       }});
  scheduler.run();
  EXPECT_LT(std::chrono::steady_clock::now() - before, seconds(5));
}

TEST(TokenSchedulerTest, SleepersWakeInTheOrderOfTheirTimes) {
  TokenScheduler scheduler;
  std::vector<int> woken;
  for (const int ms : {30, 10, 20}) {
    play(scheduler, scheduler.reserve("sleeper", 0), {.start = [&, ms](Context& context) {
           context.sleep(milliseconds(ms));
           EXPECT_EQ(context.now(), TimePoint(milliseconds(ms)));
           woken.push_back(ms);
           context.stop();
         }});
  }
  scheduler.run();
  EXPECT_THAT(woken, testing::ElementsAre(10, 20, 30));
}

TEST(TokenSchedulerTest, TimeStandsStillWhileSomebodyCanRun) {
  TokenScheduler scheduler;
  const ActorId sage = scheduler.reserve("sage", 0);
  play(scheduler, sage, oracle());
  play(scheduler, scheduler.reserve("asker", 0), {.start = [&](Context& context) {
         for (int i = 0; i < 100; ++i) context.ask<Answer>(sage, Question{i});
         EXPECT_EQ(context.now(), TimePoint{});
         context.send(sage, Number{});
         context.stop();
       }});
  play(scheduler, scheduler.reserve("sleeper", 0), {.start = [](Context& context) {
         context.sleep(seconds(1));
         context.stop();
       }});
  scheduler.run();
}

TEST(TokenSchedulerTest, PollingMovesTimeAMicrosecondATurn) {
  TokenScheduler scheduler;
  play(scheduler, scheduler.reserve("poller", 0), {.idle = [](Context& context) -> std::optional<TimePoint> {
         if (context.now() >= TimePoint(microseconds(50))) context.stop();
         return TimePoint{};
       }});
  scheduler.run();
  EXPECT_EQ(scheduler.now(), TimePoint(microseconds(50)));
}

TEST(TokenSchedulerTest, PollingForLongMovesTimeFaster) {
  TokenScheduler scheduler;
  bool over = false;
  int64_t polls = 0;
  play(scheduler, scheduler.reserve("poller", 0), {.idle = [&](Context& context) -> std::optional<TimePoint> {
         ++polls;
         if (over) context.stop();
         return TimePoint{};
       }});
  play(scheduler, scheduler.reserve("sleeper", 0), {.start = [&](Context& context) {
         context.sleep(seconds(60));
         EXPECT_EQ(context.now(), TimePoint(seconds(60)));
         over = true;
         context.stop();
       }});
  scheduler.run();
  EXPECT_LT(polls, 150'000);
}

TEST(TokenSchedulerTest, PollersOfTwoRanksSeeEachOthersPackets) {
  std::array<std::deque<std::string>, 2> inboxes;
  inboxes[1].push_back("ball");
  TokenScheduler scheduler;
  int64_t bounces = 0;
  for (int rank = 0; rank < 2; ++rank) {
    play(scheduler, scheduler.reserve("sync", rank),
         {.idle = [&, rank](Context& context) -> std::optional<TimePoint> {
           if (!inboxes[rank].empty()) {
             ++bounces;
             inboxes[1 - rank].push_back(std::move(inboxes[rank].front()));
             inboxes[rank].pop_front();
           }
           if (bounces >= 100) context.stop();
           return TimePoint{};
         }});
  }
  scheduler.run();
  EXPECT_GE(bounces, 100);
}

TEST(TokenSchedulerTest, ADeadlockNamesEveryActorAndWhatItWaitsFor) {
  TokenScheduler scheduler;
  std::vector<Envelope> kept;
  const ActorId sync = scheduler.reserve("sync", 1);
  play(scheduler, sync,
       {.receive = [&](Context&, Envelope& envelope) { kept.push_back(std::move(envelope)); }});
  play(scheduler, scheduler.reserve("compute", 0), {.start = [&](Context& context) {
         context.sleep(milliseconds(1));
         context.ask<Answer>(sync, Question{1});
       }});
  EXPECT_EQ(
      run_error(scheduler),
      "deadlock: rank 1 sync waits for a message; rank 0 compute waits for rank 1 sync to answer Question");
}

TEST(TokenSchedulerTest, FullMailboxesThatBlockEachOtherAreFoundWhileOthersRun) {
  TokenScheduler scheduler;
  const ActorId one = scheduler.reserve("one", 0, {.requests = 2});
  const ActorId two = scheduler.reserve("two", 0, {.requests = 2});
  const auto flood = [](ActorId to) {
    return Script{.start = [to](Context& context) {
      for (int i = 0; i < 10; ++i) context.send(to, Number{i});
    }};
  };
  play(scheduler, one, flood(two));
  play(scheduler, two, flood(one));
  play(scheduler, scheduler.reserve("heartbeat", 0),
       {.idle = [](Context& context) -> std::optional<TimePoint> { return context.now() + seconds(1); }});
  const std::string error = run_error(scheduler);
  EXPECT_THAT(error, HasSubstr("full mailboxes block each other"));
  EXPECT_THAT(error, HasSubstr("rank 0 one waits for space in the mailbox of rank 0 two to send Number"));
  EXPECT_THAT(scheduler.blocked_senders(), HasSubstr("rank 0 two waits for space"));
  EXPECT_THAT(scheduler.blocked_senders(), testing::Not(HasSubstr("heartbeat")));
  EXPECT_LT(scheduler.now(), TimePoint(seconds(1)));
}

TEST(TokenSchedulerTest, ActorsThatWaitForEachOthersAnswersAreFoundWhileOthersRun) {
  TokenScheduler scheduler;
  const ActorId one = scheduler.reserve("one", 0);
  const ActorId two = scheduler.reserve("two", 0);
  const auto asks = [](ActorId whom) {
    return Script{.start = [whom](Context& context) { context.ask<Answer>(whom, Question{1}); }};
  };
  play(scheduler, one, asks(two));
  play(scheduler, two, asks(one));
  play(scheduler, scheduler.reserve("heartbeat", 0),
       {.idle = [](Context& context) -> std::optional<TimePoint> { return context.now() + seconds(1); }});
  const std::string error = run_error(scheduler);
  EXPECT_THAT(error, HasSubstr("actors wait for each other"));
  EXPECT_THAT(error, HasSubstr("rank 0 one waits for rank 0 two to answer Question"));
  EXPECT_LT(scheduler.now(), TimePoint(seconds(1)));
  EXPECT_EQ(scheduler.blocked_senders(), "");
}

TEST(TokenSchedulerTest, ItsTimeLimitEndsARun) {
  TokenScheduler::Options options = seeded(0);
  options.time_limit = TimePoint(seconds(10));
  TokenScheduler scheduler(options);
  play(scheduler, scheduler.reserve("poller", 0),
       {.idle = [](Context&) -> std::optional<TimePoint> { return TimePoint{}; }});
  EXPECT_THAT(run_error(scheduler), HasSubstr("time limit"));
}

TEST(TokenSchedulerTest, ATimeLimitThatIsMovedCountsFromThere) {
  TokenScheduler::Options options = seeded(0);
  options.time_limit = TimePoint(seconds(10));
  TokenScheduler scheduler(options);
  play(scheduler, scheduler.reserve("worker", 0), {.start = [&](Context& context) {
         for (int done = 0;; ++done) {
           context.sleep(seconds(8));
           if (done < 5) scheduler.set_time_limit(context.now() + seconds(10));
         }
       }});
  EXPECT_THAT(run_error(scheduler), HasSubstr("time limit"));
  EXPECT_EQ(scheduler.now(), TimePoint(seconds(7 * 8)));
}

TEST(TokenSchedulerTest, ARankIsSwitchedInWheneverItsActorsRun) {
  int current = -1;
  int switches = 0;
  TokenScheduler::Options options = seeded(3);
  options.on_switch = [&](int rank) {
    EXPECT_NE(rank, current);
    current = rank;
    ++switches;
  };
  TokenScheduler scheduler(options);
  for (int rank = 0; rank < 3; ++rank) {
    for (int twin = 0; twin < 2; ++twin) {
      play(scheduler, scheduler.reserve("actor", rank), {.start = [&, rank](Context& context) {
             for (int round = 0; round < 20; ++round) {
               EXPECT_EQ(current, rank);
               context.sleep(microseconds(1));
             }
             EXPECT_EQ(current, rank);
             context.stop();
           }});
    }
  }
  scheduler.run();
  EXPECT_GT(switches, 10);
}

TEST(TokenSchedulerTest, PinnedActorsMayRunOnOneAndTheSameCore) {
  TokenScheduler scheduler;
  std::set<int> cores;
  for (int i = 0; i < 4; ++i) {
    play(scheduler, scheduler.reserve("actor", i), {.start = [&](Context& context) {
           cpu_set_t allowed;
           ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
           EXPECT_EQ(CPU_COUNT(&allowed), 1);
           cores.insert(sched_getcpu());
           context.stop();
         }});
  }
  scheduler.run();
  EXPECT_EQ(cores.size(), 1u);
}

TEST(TokenSchedulerTest, AnotherActorMayRunBetweenTwoMessages) {
  std::set<std::string> orders;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::string order;
    TokenScheduler scheduler(seeded(seed));
    for (const char name : {'a', 'b'}) {
      const ActorId id = scheduler.reserve(std::string(1, name), 0);
      play(scheduler, id, {.receive = [&, name](Context& context, Envelope& envelope) {
             order += name;
             if (envelope.message.get_if<Number>()->value == 1) context.stop();
           }});
      for (int i = 0; i < 2; ++i) scheduler.post(id, Number{i});
    }
    scheduler.run();
    orders.insert(order);
  }
  EXPECT_THAT(orders, testing::ElementsAre("aabb", "abab", "abba", "baab", "baba", "bbaa"));
}

// A message, the end of a sleep and a poll fall into the time for which rank 1 stands still.
TEST(TokenSchedulerTest, ASuspendedRankStandsStillUntilItsTimeHasCome) {
  TokenScheduler scheduler(seeded(1));
  const TimePoint resumes(seconds(5));
  std::vector<TimePoint> runs;
  const ActorId reader = scheduler.reserve("reader", 1);
  play(scheduler, reader, {.receive = [&](Context& context, Envelope&) {
         runs.push_back(context.now());
         context.stop();
       }});
  play(scheduler, scheduler.reserve("sleeper", 1), {.start = [&](Context& context) {
         context.sleep(seconds(2));
         runs.push_back(context.now());
         context.stop();
       }});
  play(scheduler, scheduler.reserve("poller", 1), {.idle = [&](Context& context) -> std::optional<TimePoint> {
         if (context.now() < TimePoint(seconds(1))) return context.now();
         runs.push_back(context.now());
         context.stop();
         return std::nullopt;
       }});
  play(scheduler, scheduler.reserve("other", 0), {.start = [&](Context& context) {
         context.sleep(milliseconds(500));
         scheduler.suspend(1, resumes);
         context.send(reader, Number{});
         context.sleep(seconds(1));
         EXPECT_EQ(context.now(), TimePoint(milliseconds(1500))) << "other ranks continue";
         context.stop();
       }});
  scheduler.run();
  ASSERT_EQ(runs.size(), 3u);
  for (const TimePoint run : runs) EXPECT_GE(run, resumes);
  EXPECT_LT(runs.back(), resumes + milliseconds(10));
}

TEST(TokenSchedulerTest, ASuspendedRankIsResumedByATimeThatHasPassed) {
  TokenScheduler scheduler(seeded(1));
  TimePoint ran = kNever;
  play(scheduler, scheduler.reserve("sleeper", 1), {.start = [&](Context& context) {
         context.sleep(seconds(2));
         ran = context.now();
         context.stop();
       }});
  play(scheduler, scheduler.reserve("other", 0), {.start = [&](Context& context) {
         context.sleep(seconds(1));
         scheduler.suspend(1, TimePoint(hours(1)));
         context.sleep(seconds(2));
         scheduler.suspend(1, context.now());
         context.stop();
       }});
  scheduler.run();
  EXPECT_EQ(ran, TimePoint(seconds(3)));
}

TEST(SimClockTest, ShowsTheSchedulersTime) {
  TokenScheduler scheduler;
  const SimClock clock(scheduler);
  play(scheduler, scheduler.reserve("sleeper", 0), {.start = [&](Context& context) {
         context.sleep(milliseconds(1500));
         EXPECT_EQ(clock.now(), context.now());
         EXPECT_EQ(clock.unix_ms(), SimClock::kStartUnixMs + 1500);
         context.stop();
       }});
  scheduler.run();
}

}  // namespace
}  // namespace tutti
