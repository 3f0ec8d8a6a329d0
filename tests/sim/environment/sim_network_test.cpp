#include "sim/environment/sim_network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/environment/sim_fabric.h"
#include "tests/runtime/actor/cast.h"

namespace tutti {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// Two senders to rank 2, which reads until it has everything.
struct Traffic {
  std::vector<std::string> got;
  TimePoint ended;
};

Traffic traffic(uint64_t seed, const SimNetwork::Delay& delay = {}) {
  constexpr int kEach = 20;
  Traffic traffic;
  TokenScheduler scheduler({.seed = seed, .on_switch = {}});
  SimNetwork network(scheduler, 3, RandomKey(seed, "network"), delay);
  for (const int rank : {0, 1}) {
    play(scheduler, scheduler.reserve("sender", rank), {.start = [&, rank](Context& context) {
           const auto way = network.transport(rank);
           for (int i = 0; i < kEach; ++i) way->send(2, std::to_string(rank) + "." + std::to_string(100 + i));
           context.stop();
         }});
  }
  const ActorId reader = scheduler.reserve("reader", 2);
  play(scheduler, reader, {.idle = [&](Context& context) -> std::optional<TimePoint> {
         while (const auto packet = network.transport(2)->poll()) traffic.got.push_back(packet->bytes);
         if (traffic.got.size() == 2 * kEach) context.stop();
         return context.now() + std::chrono::seconds(1000);
       }});
  network.set_reader(2, reader);
  scheduler.set_poll_interval(reader, std::chrono::seconds(1000));
  scheduler.run();
  traffic.ended = scheduler.now();
  return traffic;
}

TEST(SimNetworkTest, EachSendersPacketsKeepTheirOrderAndTheReaderIsWoken) {
  const Traffic seen = traffic(1);
  for (const char* sender : {"0.", "1."}) {
    std::vector<std::string> own;
    for (const auto& packet : seen.got)
      if (packet.starts_with(sender)) own.push_back(packet);
    EXPECT_EQ(own.size(), 20u);
    EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
  }
  EXPECT_LT(seen.ended, TimePoint(std::chrono::seconds(1))) << "it was not woken";
}

TEST(SimNetworkTest, SendersOvertakeEachOtherAsTheSeedHasIt) {
  EXPECT_EQ(traffic(1).got, traffic(1).got);
  EXPECT_NE(traffic(1).got, traffic(2).got);
}

// Others are overtaken all the time.
TEST(SimNetworkTest, OnlyPacketsThatCountAreCountedWhenTheyAreOvertaken) {
  int64_t late = 0, usual = 0;
  traffic(1, [&, sent = 0](int, int) mutable {
    const bool first = sent++ < 20;
    return SimNetwork::ExtraDelay{std::chrono::seconds(first ? 3 : 0), first ? &late : nullptr};
  });
  EXPECT_GT(late, 0);
  traffic(1, [&, sent = 0](int, int) mutable {
    const bool first = sent++ < 20;
    return SimNetwork::ExtraDelay{std::chrono::seconds(first ? 3 : 0), first ? nullptr : &usual};
  });
  EXPECT_EQ(usual, 0) << "those that are not late overtake";
}

TEST(SimNetworkTest, ALateSenderIsLate) {
  const Traffic seen = traffic(
      1, [](int from, int) { return SimNetwork::ExtraDelay{std::chrono::seconds(from == 0 ? 3 : 0)}; });
  EXPECT_TRUE(seen.got.front().starts_with("1."));
  EXPECT_TRUE(seen.got.back().starts_with("0."));
  EXPECT_GE(seen.ended, TimePoint(std::chrono::seconds(3)));
}

TEST(SimNetworkTest, UndeliveredPacketsOfADeadRankAreLost) {
  TokenScheduler scheduler({.on_switch = {}});
  SimNetwork network(scheduler, 2, RandomKey(1, "network"), {});
  play(scheduler, scheduler.reserve("both", 0), {.start = [&](Context& context) {
         network.transport(0)->send(1, "arrives");
         context.sleep(milliseconds(10));
         network.transport(0)->send(1, "lost");
         network.lose_packets_of(0);
         context.sleep(milliseconds(10));
         EXPECT_EQ(network.transport(1)->poll()->bytes, "arrives");
         EXPECT_FALSE(network.transport(1)->poll());
         context.stop();
       }});
  scheduler.run();
}

struct TwoProcesses final : SimFabric::Processes {
  bool one_is_gone = false;
  int hung = 0;

  bool gone(int rank) const override { return rank == 1 && one_is_gone; }
  void check_alive(int) const override {}
  void on_hang(const SimFabric::Hang&) override { ++hung; }
};

// The result on rank 0 of a barrier that rank 1 joins, or not.
std::string barrier(bool joins, bool dies, Nanoseconds hang, Nanoseconds* took, int* hung = nullptr) {
  std::string outcome;
  TokenScheduler scheduler({.on_switch = {}});
  TwoProcesses processes;
  SimFabric fabric(scheduler, 2, RandomKey(1, "fabric"), processes);
  play(scheduler, scheduler.reserve("zero", 0), {.start = [&](Context& context) {
         if (hang > Nanoseconds(0)) fabric.hang_next({context.now() + hang, "hang"});
         const auto group = fabric.factory(0)->make({0, 1});
         const WorkPtr work = group->barrier("all");
         try {
           while (!work->done() && context.now() < TimePoint(std::chrono::seconds(60)))
             context.sleep(milliseconds(1));
           outcome = work->done() ? "done" : "waits";
         } catch (const CollectiveError& error) {
           outcome = error.what();
         }
         *took = context.now().time_since_epoch();
         context.stop();
       }});
  play(scheduler, scheduler.reserve("one", 1), {.start = [&](Context& context) {
         const auto group = fabric.factory(1)->make({0, 1});
         if (joins) group->barrier("all");
         processes.one_is_gone = dies;
         context.stop();
       }});
  scheduler.run();
  if (hung) *hung += processes.hung;
  return outcome;
}

TEST(SimFabricTest, ACollectiveEndsOnceAllHavePosted) {
  Nanoseconds took{};
  EXPECT_EQ(barrier(true, false, Nanoseconds(0), &took), "done");
  EXPECT_LT(took, milliseconds(10));
}

TEST(SimFabricTest, ACollectiveThatWaitsForADeadRankFailsAfterHalfASecond) {
  Nanoseconds took{};
  EXPECT_THAT(barrier(false, true, Nanoseconds(0), &took),
              HasSubstr("rank 1 is gone: its process ended while #0 barrier"));
  EXPECT_GE(took, SimFabric::kLostRankTimeout);
  EXPECT_LT(took, 2 * SimFabric::kLostRankTimeout);
}

TEST(SimFabricTest, ACollectiveThatHangsEndsWhenItIsAskedTo) {
  Nanoseconds took{};
  int hung = 0;
  EXPECT_EQ(barrier(true, false, std::chrono::seconds(5), &took, &hung), "done");
  EXPECT_GE(took, std::chrono::seconds(5));
  EXPECT_EQ(barrier(true, false, std::chrono::hours(1), &took, &hung), "waits");
  EXPECT_EQ(hung, 2);
}

// A collective that a rank never posts does not use up a planned hang.
TEST(SimFabricTest, AHangCountsOnceAllHavePosted) {
  Nanoseconds took{};
  int hung = 0;
  EXPECT_THAT(barrier(false, true, std::chrono::seconds(5), &took, &hung), HasSubstr("rank 1 is gone"));
  EXPECT_EQ(hung, 0);
}

}  // namespace
}  // namespace tutti
