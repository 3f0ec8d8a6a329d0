#include <gtest/gtest.h>
#include <sched.h>

#include <map>
#include <thread>
#include <vector>

#include "runtime/actor/control_block.h"
#include "tests/runtime/actor/cast.h"
#include "tests/runtime/watchdog.h"

namespace tutti {
namespace {

Envelope number(int64_t value) { return {ActorId{0}, Number{value}, nullptr}; }
Envelope credit(int64_t value) { return {ActorId{0}, Permit{value}, nullptr}; }

bool push(Mailbox& mailbox, Envelope envelope) { return mailbox.push(envelope); }

int64_t pop(Mailbox& mailbox) {
  Envelope envelope;
  if (!mailbox.pop(envelope)) return -1;
  if (auto* number = envelope.message.get_if<Number>()) return number->value;
  return envelope.message.get_if<Permit>()->value;
}

class MailboxCapacityTest : public testing::TestWithParam<int> {};

TEST_P(MailboxCapacityTest, HoldsExactlyItsCapacityInEveryLap) {
  const int capacity = GetParam();
  Mailbox mailbox({.requests = capacity});
  int64_t in = 0;
  int64_t out = 0;
  for (int lap = 0; lap < 5; ++lap) {
    while (push(mailbox, number(in))) ++in;
    EXPECT_EQ(in - out, capacity);
    EXPECT_FALSE(mailbox.has_space());
    for (int taken = 0; taken < capacity / 2 + 1; ++taken) EXPECT_EQ(pop(mailbox), out++);
    EXPECT_TRUE(mailbox.has_space());
  }
}

INSTANTIATE_TEST_SUITE_P(Capacities, MailboxCapacityTest, testing::Values(1, 2, 3, 5, 8, 100, 256));

TEST(MailboxTest, TakesTheReservedLaneFirst) {
  Mailbox mailbox({.requests = 4});
  push(mailbox, number(1));
  push(mailbox, number(2));
  push(mailbox, credit(10));
  EXPECT_EQ(pop(mailbox), 10);
  EXPECT_EQ(pop(mailbox), 1);
  push(mailbox, credit(11));
  EXPECT_EQ(pop(mailbox), 11);
  EXPECT_EQ(pop(mailbox), 2);
  EXPECT_TRUE(mailbox.empty());
}

TEST(MailboxTest, FullRequestsLeaveReservedPlaces) {
  Mailbox mailbox({.requests = 2});
  while (push(mailbox, number(0))) {
  }
  EXPECT_TRUE(push(mailbox, credit(1)));
}

TEST(MailboxTest, EachQueueHasACapacityOfItsOwn) {
  Mailbox mailbox({.requests = 1, .reserved = 3});
  EXPECT_TRUE(push(mailbox, number(1)));
  EXPECT_FALSE(push(mailbox, number(2)));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(push(mailbox, credit(i)));
  EXPECT_FALSE(push(mailbox, credit(3)));
}

TEST(MailboxTest, RefusedEnvelopeStaysWhole) {
  Mailbox mailbox({.requests = 1});
  push(mailbox, number(1));
  Envelope envelope = number(42);
  ASSERT_FALSE(mailbox.push(envelope));
  EXPECT_EQ(envelope.message.get_if<Number>()->value, 42);
}

TEST(MailboxTest, KeepsEachSendersOrderUnderContention) {
  const Watchdog watchdog;
  constexpr int kSenders = 4;
  constexpr int64_t kEach = 50'000;
  Mailbox mailbox({.requests = 7});
  std::vector<std::thread> senders;
  for (uint32_t sender = 0; sender < kSenders; ++sender) {
    senders.emplace_back([&mailbox, sender] {
      for (int64_t i = 0; i < kEach; ++i) {
        Envelope envelope{ActorId{sender}, Number{i}, nullptr};
        while (!mailbox.push(envelope)) sched_yield();
      }
    });
  }
  std::map<uint32_t, int64_t> next;
  for (int64_t taken = 0; taken < kSenders * kEach;) {
    Envelope envelope;
    if (!mailbox.pop(envelope)) {
      sched_yield();
      continue;
    }
    ++taken;
    ASSERT_EQ(envelope.message.get_if<Number>()->value, next[envelope.from.index]++);
  }
  for (std::thread& sender : senders) sender.join();
  EXPECT_TRUE(mailbox.empty());
}

}  // namespace
}  // namespace tutti
