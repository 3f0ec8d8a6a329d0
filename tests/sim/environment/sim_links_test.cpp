#include "sim/environment/sim_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "recipe/toml_reader.h"
#include "sim/faults/link_faults.h"

namespace tutti {
namespace {

TimePoint second(int64_t s) { return TimePoint(std::chrono::seconds(s)); }

// Links with a record of the affected messages, by the fault's label.
struct WatchedLinks {
  std::map<std::string, std::vector<TimePoint>> late;
  SimLinks links{[this](const std::string& label, TimePoint until) { late[label].push_back(until); }};
};

TEST(SimLinksTest, LinksWithoutFaultsTakeNoTime) {
  WatchedLinks watched;
  EXPECT_TRUE(watched.links.calm());
  EXPECT_EQ(watched.links.pass(0, 1, second(3)), second(3));
}

TEST(SimLinksTest, AHoldConcernsItsDirectionAndItsTimeAlone) {
  WatchedLinks watched;
  watched.links.hold({.from = 0, .to = 1, .begin = second(2), .end = second(5), .label = "cut"});
  EXPECT_FALSE(watched.links.calm());
  EXPECT_EQ(watched.links.pass(0, 1, second(1)), second(1)) << "before";
  EXPECT_EQ(watched.links.pass(0, 1, second(2)), second(5));
  EXPECT_EQ(watched.links.pass(0, 1, second(5)), second(5)) << "after";
  EXPECT_EQ(watched.links.pass(1, 0, second(2)), second(2)) << "the other direction";
  EXPECT_EQ(watched.links.pass(0, 2, second(2)), second(2)) << "another receiver";
  EXPECT_EQ(watched.late["cut"], std::vector{second(5)}) << "a message that was not held has no effect";
}

TEST(SimLinksTest, AMessageThatLeavesAHoldMayRunIntoTheNext) {
  WatchedLinks watched;
  watched.links.hold(
      {.from = SimLinks::kAnyRank, .to = 1, .begin = second(4), .end = second(7), .label = "b"});
  watched.links.hold(
      {.from = 0, .to = SimLinks::kAnyRank, .begin = second(2), .end = second(5), .label = "a"});
  EXPECT_EQ(watched.links.pass(0, 1, second(3)), second(7));
  EXPECT_EQ(watched.links.pass(0, 2, second(3)), second(5));
  EXPECT_EQ(watched.links.pass(2, 1, second(3)), second(3));
}

TEST(SimLinksTest, AMessageOfACutLinkStaysHeld) {
  WatchedLinks watched;
  watched.links.hold({.from = 0, .to = 1, .begin = second(2), .end = kNever, .label = "cut"});
  EXPECT_EQ(watched.links.pass(0, 1, second(100)), kNever);
  EXPECT_EQ(watched.late["cut"], std::vector{kNever});
}

TEST(SimLinksTest, ASlowLinkIsSlowForItsCountOfMessages) {
  WatchedLinks watched;
  watched.links.slow({0, 1, std::chrono::seconds(2), 2, "slow"});
  EXPECT_EQ(watched.links.pass(1, 0, second(1)), second(1));
  EXPECT_EQ(watched.links.pass(0, 1, second(1)), second(3));
  EXPECT_EQ(watched.links.pass(0, 1, second(4)), second(6));
  EXPECT_EQ(watched.links.pass(0, 1, second(5)), second(5));
  EXPECT_EQ(watched.late["slow"], (std::vector{second(3), second(6)}));
}

// When the links of each rank to another are free again, of those that are held in the middle of the time.
std::vector<std::pair<TimePoint, int>> releases(uint64_t seed, int ranks) {
  const FaultPlan plan = make_fault_plan(
      parse_recipe("[[fault]]\nkind = 'clog'\nseconds = 10\ncount = 4\n", "plan.toml"), ranks);
  WatchedLinks watched;
  begin_link_fault(watched.links, plan.rules[0], 1, ranks, second(100), RandomKey(seed, "clog"));
  std::vector<std::pair<TimePoint, int>> free;
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(watched.links.pass(rank, rank, second(110)), second(110)) << "the time is over";
    const TimePoint passed = watched.links.pass(rank, rank, second(105));  // sends and receives
    if (passed > second(105)) free.emplace_back(passed, rank);
  }
  return free;
}

TEST(LinkFaultsTest, AClogHoldsSeveralRanksAtOnceAndFreesThemInADrawnOrder) {
  std::set<std::vector<int>> orders;
  std::set<int> held;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    auto free = releases(seed, 6);
    EXPECT_EQ(free.size(), 4u) << "seed " << seed;
    std::ranges::sort(free);
    std::vector<int> order;
    for (const auto& [time, rank] : free) order.push_back(rank), held.insert(rank);
    EXPECT_THAT(order, testing::Contains(1)) << "the rank with the fault";
    orders.insert(order);
  }
  EXPECT_EQ(held.size(), 6u);
  EXPECT_GT(orders.size(), 20u);
}

TEST(LinkFaultsTest, AClogBeginsOneRankAfterTheOther) {
  int begun = 0, late = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const FaultPlan plan =
        make_fault_plan(parse_recipe("[[fault]]\nkind = 'clog'\nseconds = 10\ncount = 3\n", "plan.toml"), 3);
    WatchedLinks watched;
    begin_link_fault(watched.links, plan.rules[0], 0, 3, second(100), RandomKey(seed, "clog"));
    for (int rank = 0; rank < 3; ++rank) {
      const bool at_once = watched.links.pass(rank, rank, second(100)) > second(100);
      EXPECT_EQ(at_once, rank == 0);
      (at_once ? begun : late) += watched.links.pass(rank, rank, second(105)) > second(105);
    }
  }
  EXPECT_EQ(begun, 30);
  EXPECT_EQ(late, 60);
}

TEST(LinkFaultsTest, ACutDrawsItsReceiverAndHealsAfterItsTime) {
  const auto plan = make_fault_plan(
      parse_recipe("[[fault]]\nkind = 'cut'\nseconds = 10\n[[fault]]\nkind = 'cut'\nto = 2\n", "plan.toml"),
      4);
  std::set<int> receivers;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    WatchedLinks watched;
    begin_link_fault(watched.links, plan.rules[0], 1, 4, second(100), RandomKey(seed, "cut"));
    for (int to = 0; to < 4; ++to)
      if (watched.links.pass(1, to, second(109)) == second(110)) receivers.insert(to);
    EXPECT_EQ(watched.late.size(), 1u);
  }
  EXPECT_EQ(receivers, (std::set{0, 2, 3}));
  WatchedLinks watched;
  begin_link_fault(watched.links, plan.rules[1], 1, 4, second(100), RandomKey(1, "cut"));
  EXPECT_EQ(watched.links.pass(1, 2, second(101)), second(103));
}

}  // namespace
}  // namespace tutti
