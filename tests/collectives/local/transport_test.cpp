#include "collectives/local/transport.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "tests/runtime/watchdog.h"

namespace tutti {
namespace {

TEST(LocalTransportTest, PacketsReachTheirRankInOrder) {
  LocalNetwork network(3);
  const auto zero = network.transport(0);
  const auto two = network.transport(2);
  EXPECT_EQ(two->rank(), 2);
  EXPECT_EQ(two->size(), 3);
  zero->send(2, "first");
  zero->send(2, std::string("\0second", 7));
  const auto first = two->poll();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->from, 0);
  EXPECT_EQ(first->bytes, "first");
  EXPECT_EQ(two->poll()->bytes, std::string("\0second", 7));
  EXPECT_FALSE(two->poll());
  EXPECT_FALSE(network.transport(1)->poll());
}

TEST(LocalTransportTest, ARankMaySendToItself) {
  LocalNetwork network(1);
  const auto only = network.transport(0);
  only->send(0, "note");
  EXPECT_EQ(only->poll()->bytes, "note");
}

TEST(LocalTransportTest, ManyThreadsMaySend) {
  const Watchdog watchdog;
  constexpr int kSenders = 4;
  constexpr int kEach = 2000;
  LocalNetwork network(kSenders + 1);
  std::vector<std::thread> senders;
  for (int rank = 0; rank < kSenders; ++rank) {
    senders.emplace_back([&network, rank] {
      const auto transport = network.transport(rank);
      for (int i = 0; i < kEach; ++i) transport->send(kSenders, std::to_string(i));
    });
  }
  const auto reader = network.transport(kSenders);
  std::vector<int> next(kSenders);
  for (int got = 0; got < kSenders * kEach;) {
    const auto packet = reader->poll();
    if (!packet) {
      sched_yield();
      continue;
    }
    ++got;
    ASSERT_EQ(packet->bytes, std::to_string(next[packet->from]++));
  }
  for (std::thread& sender : senders) sender.join();
}

TEST(LocalTransportTest, SendingToNobodyIsABug) {
  LocalNetwork network(2);
  EXPECT_DEATH(network.transport(0)->send(2, ""), "no rank 2");
}

}  // namespace
}  // namespace tutti
