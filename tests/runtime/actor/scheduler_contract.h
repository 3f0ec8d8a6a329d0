#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "runtime/actor/stop_token.h"
#include "runtime/error.h"
#include "tests/runtime/actor/cast.h"
#include "tests/runtime/watchdog.h"

namespace tutti {

struct Counted {
  static constexpr const char* kName = "Counted";
  std::shared_ptr<int> counted;
};

// The contract that every scheduler holds: instantiate it with
// INSTANTIATE_TYPED_TEST_SUITE_P(Name, SchedulerTest, SomeScheduler).
template <class S>
class SchedulerTest : public testing::Test {
 protected:
  ActorId add(const std::string& name, Script script, int capacity = MailboxCapacity().requests) {
    const ActorId id = scheduler.reserve(name, 1, {capacity, capacity});
    play(scheduler, id, std::move(script));
    return id;
  }
  S scheduler;

 private:
  Watchdog watchdog_;
};

TYPED_TEST_SUITE_P(SchedulerTest);

TYPED_TEST_P(SchedulerTest, MessagesArriveInOrderThroughASmallMailbox) {
  constexpr int kMany = 2000;
  std::vector<int64_t> got;
  const ActorId reader = this->add("reader",
                                   {.receive =
                                        [&](Context& context, Envelope& envelope) {
                                          got.push_back(envelope.message.get_if<Number>()->value);
                                          if (got.size() == kMany) context.stop();
                                        }},
                                   3);
  this->add("writer", {.start = [&](Context& context) {
              for (int i = 0; i < kMany; ++i) context.send(reader, Number{i});
              context.stop();
            }});
  this->scheduler.run();
  std::vector<int64_t> expected(kMany);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(got, expected);
}

TYPED_TEST_P(SchedulerTest, FullMailboxHoldsTheSenderBack) {
  std::atomic<int> sent{0};
  int sent_when_read = -1;
  ActorId reader = this->scheduler.reserve("reader", 0, {.requests = 4});
  this->add("writer", {.start = [&](Context& context) {
              for (int i = 0; i < 20; ++i, ++sent) context.send(reader, Number{i});
              context.stop();
            }});
  play(this->scheduler, reader,
       {.start =
            [&](Context& context) {
              context.sleep(std::chrono::milliseconds(50));
              sent_when_read = sent;
            },
        .receive =
            [&](Context& context, Envelope& envelope) {
              if (envelope.message.template get_if<Number>()->value == 19) context.stop();
            }});
  this->scheduler.run();
  EXPECT_EQ(sent_when_read, 4);
  EXPECT_EQ(sent, 20);
}

// The reader finds a full mailbox, takes one message, which does not make it half empty, and then waits for
// the writer that it holds back.
TYPED_TEST_P(SchedulerTest, SenderIsLetGoOnceTheReaderBlocks) {
  int64_t answer = 0;
  const ActorId reader = this->scheduler.reserve("reader", 0, {.requests = 4});
  const ActorId writer = this->add("writer", {.start =
                                                  [&](Context& context) {
                                                    for (int i = 0; i < 5; ++i)
                                                      context.send(reader, Number{i});
                                                  },
                                              .receive =
                                                  [](Context& context, Envelope& envelope) {
                                                    context.reply(envelope, Answer{7});
                                                    context.stop();
                                                  }});
  play(this->scheduler, reader,
       {.start = [](Context& context) { context.sleep(std::chrono::milliseconds(20)); },
        .receive =
            [&](Context& context, Envelope&) {
              answer = context.ask<Answer>(writer, Question{1}).value;
              context.stop();
            }});
  this->scheduler.run();
  EXPECT_EQ(answer, 7);
}

TYPED_TEST_P(SchedulerTest, SendersToAnActorThatStopsAreLetGo) {
  const ActorId reader = this->add("reader",
                                   {.start =
                                        [](Context& context) {
                                          context.sleep(std::chrono::milliseconds(20));
                                          context.stop();
                                        }},
                                   2);
  this->add("writer", {.start = [&](Context& context) {
              for (int i = 0; i < 10; ++i) context.send(reader, Number{i});
              context.stop();
            }});
  this->scheduler.run();
}

TYPED_TEST_P(SchedulerTest, ReservedMessagesOvertakeRequests) {
  std::vector<std::string> got;
  ActorId reader = this->scheduler.reserve("reader", 0);
  this->scheduler.post(reader, Number{1});
  this->scheduler.post(reader, Number{2});
  this->scheduler.post(reader, Permit{3});
  play(this->scheduler, reader, {.receive = [&](Context& context, Envelope& envelope) {
         got.push_back(envelope.message.name());
         if (got.size() == 3) context.stop();
       }});
  this->scheduler.run();
  EXPECT_THAT(got, testing::ElementsAre("Permit", "Number", "Number"));
}

TYPED_TEST_P(SchedulerTest, PostFailsWhenTheMailboxIsFull) {
  const ActorId reader =
      this->add("reader", {.receive = [](Context& context, Envelope&) { context.stop(); }}, 2);
  EXPECT_TRUE(this->scheduler.post(reader, Number{1}));
  EXPECT_TRUE(this->scheduler.post(reader, Number{2}));
  EXPECT_FALSE(this->scheduler.post(reader, Number{3}));
  this->scheduler.run();
}

TYPED_TEST_P(SchedulerTest, AskReturnsTheReply) {
  const ActorId sage = this->add("sage", oracle());
  int64_t sum = 0;
  this->add("asker", {.start = [&](Context& context) {
              for (int i = 0; i < 100; ++i) sum += context.ask<Answer>(sage, Question{i}).value;
              context.send(sage, Number{});
              context.stop();
            }});
  this->scheduler.run();
  EXPECT_EQ(sum, 5050);
}

TYPED_TEST_P(SchedulerTest, ReplyMayComeLaterAndOutOfOrder) {
  std::vector<Envelope> kept;
  const ActorId sage = this->add("sage", {.receive = [&](Context& context, Envelope& envelope) {
                                   kept.push_back(std::move(envelope));
                                   if (kept.size() < 3) return;
                                   for (int i = 2; i >= 0; --i) {
                                     const int64_t value = kept[i].message.template get_if<Question>()->value;
                                     context.reply(kept[i], Answer{10 * value});
                                   }
                                   context.stop();
                                 }});
  std::vector<int64_t> got;
  bool ready_at_first = true;
  this->add("asker", {.start = [&](Context& context) {
              std::vector<Pending<Answer>> pending;
              pending.push_back(context.template request<Answer>(sage, Question{1}));
              ready_at_first = pending[0].ready();
              pending.push_back(context.template request<Answer>(sage, Question{2}));
              pending.push_back(context.template request<Answer>(sage, Question{3}));
              for (auto& one : pending) got.push_back(one.wait().value);
              context.stop();
            }});
  this->scheduler.run();
  EXPECT_FALSE(ready_at_first);
  EXPECT_THAT(got, testing::ElementsAre(10, 20, 30));
}

TYPED_TEST_P(SchedulerTest, AnAnswerMayBeWaitedForUpToATime) {
  Envelope kept;
  const ActorId sage = this->add("sage", {.receive = [&](Context& context, Envelope& envelope) {
                                   if (envelope.slot) {
                                     kept = std::move(envelope);
                                     return;
                                   }
                                   context.reply(kept, Answer{7});
                                   context.stop();
                                 }});
  std::vector<bool> ready;
  int64_t got = 0;
  this->add("asker", {.start = [&](Context& context) {
              auto pending = context.template request<Answer>(sage, Question{1});
              ready.push_back(pending.ready_by(context.now() + std::chrono::milliseconds(5)));
              context.send(sage, Number{});
              ready.push_back(pending.ready_by(context.now() + std::chrono::minutes(5)));
              got = pending.wait().value;
              context.stop();
            }});
  this->scheduler.run();
  EXPECT_THAT(ready, testing::ElementsAre(false, true));
  EXPECT_EQ(got, 7);
}

// A checkpoint would be published without the lines of its logs.
TYPED_TEST_P(SchedulerTest, AnActorThatStoppedIsNotTakenForOneThatAnswered) {
  const ActorId gone = this->add("gone", {.start = [](Context& context) {
                                   context.sleep(std::chrono::milliseconds(10));
                                   context.stop();
                                 }});
  std::vector<bool> ready;
  this->add("asker", {.start = [&](Context& context) {
              const auto pending = context.template request<Answer>(gone, Question{1});
              ready.push_back(pending.ready_by(context.now() + std::chrono::minutes(5)));
              ready.push_back(pending.ready_by(context.now() + std::chrono::minutes(5)));
              context.stop();
            }});
  this->scheduler.run();
  EXPECT_THAT(ready, testing::ElementsAre(false, false));
}

TYPED_TEST_P(SchedulerTest, ADroppedPendingDropsItsAnswer) {
  const ActorId sage = this->add("sage", oracle());
  this->add("asker", {.start = [&](Context& context) {
              context.template request<Answer>(sage, Question{1});
              context.send(sage, Number{});
              context.stop();
            }});
  this->scheduler.run();
}

TYPED_TEST_P(SchedulerTest, AskingAnActorThatHasStoppedFails) {
  const ActorId gone = this->add("gone", {.start = [](Context& context) { context.stop(); }});
  this->add("asker", {.start = [&](Context& context) {
              context.sleep(std::chrono::milliseconds(10));
              context.template ask<Answer>(gone, Question{1});
            }});
  EXPECT_EQ(run_error(this->scheduler), "rank 1 asker: rank 1 gone stopped before it answered Question");
}

TYPED_TEST_P(SchedulerTest, AskingAnActorThatStopsLaterFails) {
  const ActorId slow = this->add("slow", {.start = [](Context& context) {
                                   context.sleep(std::chrono::milliseconds(10));
                                   context.stop();
                                 }});
  this->add("asker", {.start = [&](Context& context) { context.template ask<Answer>(slow, Question{1}); }});
  EXPECT_THAT(run_error(this->scheduler),
              testing::HasSubstr("rank 1 slow stopped before it answered Question"));
}

TYPED_TEST_P(SchedulerTest, MessagesToAnActorThatHasStoppedAreDropped) {
  const ActorId gone = this->add("gone", {.start = [](Context& context) { context.stop(); }}, 2);
  const auto counted = std::make_shared<int>(0);
  this->add("writer", {.start = [&](Context& context) {
              for (int i = 0; i < 100; ++i) context.send(gone, Counted{counted});
              context.stop();
            }});
  this->scheduler.run();
  EXPECT_EQ(counted.use_count(), 1);
}

TYPED_TEST_P(SchedulerTest, AbortEndsEveryBlockingCall) {
  const ActorId silent = this->scheduler.reserve("silent", 0, {.requests = 1});
  const ActorId deaf = this->scheduler.reserve("deaf", 0, {.requests = 1});
  std::atomic<int> aborted{0};
  const auto expect_aborted = [&](auto call) {
    return [&aborted, call](Context& context) {
      try {
        call(context);
      } catch (const Aborted& error) {
        EXPECT_STREQ(error.what(), "enough");
        ++aborted;
        throw;
      }
    };
  };
  std::vector<Envelope> kept;
  play(this->scheduler, silent, {.receive = [&](Context&, Envelope& e) { kept.push_back(std::move(e)); }});
  play(this->scheduler, deaf,
       {.start = expect_aborted([](Context& context) { context.sleep(std::chrono::seconds(100)); })});
  this->add("asker", {.start = expect_aborted(
                          [&](Context& context) { context.template ask<Answer>(silent, Question{1}); })});
  this->add("sender", {.start = expect_aborted([&](Context& context) {
                         while (true) context.send(deaf, Number{1});
                       })});
  this->add("waiter", {});
  this->add("ender", {.start = [](Context& context) {
              context.sleep(std::chrono::milliseconds(20));
              context.abort({EndKind::kInterrupted, "enough"});
              context.abort({EndKind::kInterrupted, "more than enough"});
            }});
  EXPECT_EQ(run_error(this->scheduler), "enough");
  EXPECT_EQ(aborted, 3);
  EXPECT_TRUE(this->scheduler.aborted());
}

TYPED_TEST_P(SchedulerTest, AnExceptionNamesItsActor) {
  this->add("waiter", {});
  this->add("compute", {.start = [](Context&) { throw std::logic_error("shapes differ"); }});
  EXPECT_THROW(
      {
        try {
          this->scheduler.run();
        } catch (const Aborted& error) {
          EXPECT_STREQ(error.what(), "rank 1 compute: shapes differ");
          throw;
        }
      },
      Aborted);
}

TYPED_TEST_P(SchedulerTest, UserAndOperatingErrorsKeepTheirType) {
  struct DiskFull : OperatingError {
    using OperatingError::OperatingError;
  };
  this->add("waiter", {});
  this->add("loader", {.receive = [](Context&, Envelope&) { throw DiskFull("no space left"); }});
  this->scheduler.post(ActorId{1}, Number{1});
  try {
    this->scheduler.run();
    FAIL();
  } catch (const DiskFull& error) {
    EXPECT_STREQ(error.what(), "no space left");
  }
}

TYPED_TEST_P(SchedulerTest, StopEndsTheActorAfterTheMessageInHand) {
  int got = 0;
  const ActorId reader = this->add("reader", {.receive = [&](Context& context, Envelope&) {
                                     context.stop();
                                     ++got;
                                   }});
  this->scheduler.post(reader, Number{1});
  this->scheduler.post(reader, Number{2});
  this->scheduler.run();
  EXPECT_EQ(got, 1);
}

TYPED_TEST_P(SchedulerTest, IdlePollsWhileItsTimeHasPassed) {
  int polls = 0;
  this->add("poller", {.idle = [&](Context& context) -> std::optional<TimePoint> {
              if (++polls == 1000) context.stop();
              return TimePoint{};
            }});
  this->scheduler.run();
  EXPECT_EQ(polls, 1000);
}

TYPED_TEST_P(SchedulerTest, IdleIsCalledAgainAtTheTimeItAskedFor) {
  std::vector<TimePoint> calls;
  this->add("timer", {.idle = [&](Context& context) -> std::optional<TimePoint> {
              calls.push_back(context.now());
              if (calls.size() == 4) context.stop();
              return context.now() + std::chrono::milliseconds(5);
            }});
  this->scheduler.run();
  for (size_t i = 1; i < calls.size(); ++i) EXPECT_GE(calls[i] - calls[i - 1], std::chrono::milliseconds(5));
}

TYPED_TEST_P(SchedulerTest, AMessageEndsIdlenessEarly) {
  TimePoint got;
  const ActorId sleeper = this->add("sleeper", {.receive =
                                                    [&](Context& context, Envelope&) {
                                                      got = context.now();
                                                      context.stop();
                                                    },
                                                .idle = [](Context& context) -> std::optional<TimePoint> {
                                                  return context.now() + std::chrono::seconds(100);
                                                }});
  TimePoint sent;
  this->add("waker", {.start = [&](Context& context) {
              context.sleep(std::chrono::milliseconds(10));
              sent = context.now();
              context.send(sleeper, Number{1});
              context.stop();
            }});
  this->scheduler.run();
  EXPECT_LT(got - sent, std::chrono::seconds(5));
}

TYPED_TEST_P(SchedulerTest, PollersLetOthersRun) {
  bool done = false;
  this->add("poller", {.idle = [](Context&) -> std::optional<TimePoint> { return TimePoint{}; }});
  const ActorId sage = this->add("sage", oracle());
  this->add("asker", {.start = [&](Context& context) {
              for (int i = 0; i < 50; ++i) context.template ask<Answer>(sage, Question{i});
              context.sleep(std::chrono::milliseconds(5));
              done = true;
              context.abort({EndKind::kInterrupted, "done"});
            }});
  EXPECT_EQ(run_error(this->scheduler), "done");
  EXPECT_TRUE(done);
}

TYPED_TEST_P(SchedulerTest, AnAbortBeforeTheRunEndsItAtOnce) {
  bool started = false;
  this->add("actor", {.start = [&](Context&) { started = true; }});
  this->scheduler.abort({EndKind::kInterrupted, "never mind"});
  EXPECT_EQ(run_error(this->scheduler), "never mind");
  EXPECT_FALSE(started);
}

TYPED_TEST_P(SchedulerTest, ReservedOverflowIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const ActorId reader =
      this->add("reader", {.start = [](Context& context) { context.sleep(std::chrono::seconds(1)); }}, 2);
  this->add("writer", {.start = [&](Context& context) {
              for (int i = 0; i < 3; ++i) context.send(reader, Permit{i});
            }});
  EXPECT_DEATH(this->scheduler.run(), "rank 1 writer found no reserved place for Permit at rank 1 reader");
}

TYPED_TEST_P(SchedulerTest, AnUnansweredQuestionIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const ActorId mute = this->add("mute", {});
  this->add("asker", {.start = [&](Context& context) { context.template ask<Answer>(mute, Question{1}); }});
  EXPECT_DEATH(this->scheduler.run(), "rank 1 mute left Question unanswered");
}

TYPED_TEST_P(SchedulerTest, AnAnswerOfTheWrongTypeIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const ActorId sage = this->add("sage", oracle());
  this->add("asker", {.start = [&](Context& context) { context.template ask<Number>(sage, Question{1}); }});
  EXPECT_DEATH(this->scheduler.run(), "Question was answered with Answer, not Number");
}

TYPED_TEST_P(SchedulerTest, SeparateRanksEndAlone) {
  this->scheduler.separate_ranks();
  const auto blocked = [&](int rank, const std::string& name, std::function<void(Context&)> block) {
    play(this->scheduler, this->scheduler.reserve(name, rank), {.start = std::move(block)});
  };
  const ActorId silent = this->scheduler.reserve("silent", 0);
  play(this->scheduler, silent, {.receive = [](Context&, Envelope&) {}});
  blocked(0, "sleeper", [](Context& context) { context.sleep(std::chrono::hours(1)); });
  blocked(1, "failing", [](Context&) { throw OperatingError("no disk"); });
  blocked(2, "killer", [&](Context& context) {
    context.sleep(std::chrono::milliseconds(1));
    this->scheduler.abort_rank(0, {EndKind::kKilled, "killed"});
    while (!this->scheduler.stopped(0) || !this->scheduler.stopped(1))
      context.sleep(std::chrono::milliseconds(1));
    context.stop();
  });
  this->scheduler.run();
  EXPECT_EQ(this->scheduler.stop_token_of(0).end().kind, EndKind::kKilled);
  EXPECT_EQ(this->scheduler.stop_token_of(1).end().kind, EndKind::kOperatingError);
  EXPECT_EQ(this->scheduler.stop_token_of(1).end().reason, "rank 1 failing: no disk");
  EXPECT_TRUE(this->scheduler.stop_token_of(1).failure());
  EXPECT_FALSE(this->scheduler.stop_token_of(2).aborted());
}

REGISTER_TYPED_TEST_SUITE_P(SchedulerTest, MessagesArriveInOrderThroughASmallMailbox,
                            FullMailboxHoldsTheSenderBack, SenderIsLetGoOnceTheReaderBlocks,
                            SendersToAnActorThatStopsAreLetGo, ReservedMessagesOvertakeRequests,
                            PostFailsWhenTheMailboxIsFull, AskReturnsTheReply, ReplyMayComeLaterAndOutOfOrder,
                            AnAnswerMayBeWaitedForUpToATime, AnActorThatStoppedIsNotTakenForOneThatAnswered,
                            ADroppedPendingDropsItsAnswer, AskingAnActorThatHasStoppedFails,
                            AskingAnActorThatStopsLaterFails, MessagesToAnActorThatHasStoppedAreDropped,
                            AbortEndsEveryBlockingCall, AnExceptionNamesItsActor,
                            UserAndOperatingErrorsKeepTheirType, SeparateRanksEndAlone,
                            StopEndsTheActorAfterTheMessageInHand, IdlePollsWhileItsTimeHasPassed,
                            IdleIsCalledAgainAtTheTimeItAskedFor, AMessageEndsIdlenessEarly,
                            PollersLetOthersRun, AnAbortBeforeTheRunEndsItAtOnce, ReservedOverflowIsABug,
                            AnUnansweredQuestionIsABug, AnAnswerOfTheWrongTypeIsABug);

}  // namespace tutti
