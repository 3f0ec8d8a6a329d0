// The order in which Sync posts what a device runs.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "actors/sync.h"
#include "collectives/local/group.h"
#include "collectives/local/transport.h"
#include "runtime/actor/token_scheduler.h"
#include "tests/runtime/actor/scripted_actor.h"
#include "tests/sim/planted_bugs/broken_group.h"

namespace tutti {
namespace {

using testing::ElementsAre;

// A group of one rank, as if a device ran its collectives. Notes what is posted; `holds`: nothing is done.
class OnStream final : public GroupBelow {
 public:
  OnStream(std::vector<std::string>& posted, const bool& holds)
      : GroupBelow(LocalFabric::make(1)->group(0)), posted_(posted), holds_(holds) {}
  bool runs_on_stream() const override { return true; }
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override {
    posted_.push_back(label);
    return std::make_unique<Held>(GroupBelow::all_reduce(std::move(inout), label), holds_);
  }

 private:
  class Held final : public Work {
   public:
    Held(WorkPtr below, const bool& holds) : below_(std::move(below)), holds_(holds) {}
    bool done() override { return !holds_ && below_->done(); }
    const CollectiveHeader& header() const override { return below_->header(); }
    bool finite() const override { return true; }

   private:
    WorkPtr below_;
    const bool& holds_;
  };
  std::vector<std::string>& posted_;
  const bool& holds_;
};

// Sync with the groups of a sharded rank on a device, and Compute's part, which the test plays.
struct DeviceSync {
  std::vector<std::string> posted;
  bool holds = false;
  std::unique_ptr<Transport> transport = LocalNetwork(1).transport(0);
  RingRecorder recorder;
  TokenScheduler scheduler;
  ActorId sync = scheduler.reserve("sync", 0), compute = scheduler.reserve("compute", 0);

  static PlanEntry entry(GroupRole group, const PassPlace& place, const std::string& label) {
    return {.group = group, .whole = at::ones({2}), .place = place, .label = label};
  }
  // The backward of three units under `full`, in the order of their entries: gathers, then sums.
  static std::vector<PlanEntry> backward() {
    const auto gather = [](std::size_t unit) {
      return entry(GroupRole::kGathers, PassPlace::gather(0, unit, 4), "gather " + std::to_string(unit));
    };
    const auto sum = [](std::size_t unit) {
      return entry(GroupRole::kReductions, PassPlace::sum(0, unit, 4), "sum " + std::to_string(unit));
    };
    return {entry(GroupRole::kGathers, {0}, "forward"),
            gather(2),
            gather(1),
            sum(3),
            sum(2),
            sum(1),
            sum(0),
            entry(GroupRole::kReductions, PassPlace::last(), "check")};
  }
  void run(std::vector<PlanEntry> plan, const std::function<void(Context&)>& start) {
    const std::shared_ptr<Group> world = LocalFabric::make(1)->group(0);
    const auto on_stream = [this] { return std::make_shared<OnStream>(posted, holds); };
    scheduler.install(sync, std::make_unique<Sync>(*transport, compute, recorder));
    scheduler.post(sync, Join{.groups = {world, on_stream(), on_stream(), on_stream()}});
    play(scheduler, compute, {.start = [&](Context& context) {
           context.send(sync, SetPlan{std::move(plan)});
           start(context);
           holds = false;
           context.ask<PassDone>(sync, FinishStep{1});
           context.send(sync, Stop{});
           context.stop();
         }});
    scheduler.run();
  }
};

TEST(SyncOrderTest, GathersAndSumsOfABackwardTakeTurns) {
  DeviceSync rank;
  rank.run(DeviceSync::backward(), [](Context&) {});
  EXPECT_THAT(rank.posted,
              ElementsAre("forward", "gather 2", "sum 3", "gather 1", "sum 2", "sum 1", "sum 0", "check"));
}

TEST(SyncOrderTest, EntriesWaitForEarlierOnesThatAreNotReady) {
  DeviceSync rank;
  rank.run(DeviceSync::backward(), [&](Context& context) {
    for (const int ready : {0, 2, 3}) context.send(rank.sync, RunEntry{ready, 1});
    context.sleep(std::chrono::milliseconds(50));
    EXPECT_THAT(rank.posted, ElementsAre("forward"));
    context.send(rank.sync, RunEntry{1, 1});
    context.ask<EntryDone>(rank.sync, AwaitEntry{2});
    EXPECT_THAT(rank.posted, ElementsAre("forward", "gather 2", "sum 3", "gather 1"));
  });
}

TEST(SyncOrderTest, MicrobatchesFollowEachOther) {
  const auto of = [](int64_t microbatch, const std::string& label) {
    return DeviceSync::entry(GroupRole::kGathers, {microbatch}, label);
  };
  const auto sum_of = [](int64_t microbatch, const std::string& label) {
    return DeviceSync::entry(GroupRole::kReductions, PassPlace::sum(microbatch, 0, 2), label);
  };
  DeviceSync rank;
  rank.run({of(-1, "root"), of(0, "first"), of(1, "second"), sum_of(0, "sum 0"), sum_of(1, "sum 1")},
           [](Context&) {});
  EXPECT_THAT(rank.posted, ElementsAre("root", "first", "sum 0", "second", "sum 1"));
}

// Their results need no host in between.
TEST(SyncOrderTest, EntriesThatShareMemoryFollowEachOtherOnTheDevice) {
  DeviceSync rank;
  rank.holds = true;
  std::vector<PlanEntry> plan{DeviceSync::entry(GroupRole::kReductions, {}, "sum of shards"),
                              DeviceSync::entry(GroupRole::kReplicas, {}, "sum of replicas")};
  plan[1].after = 0;
  rank.run(std::move(plan), [&](Context& context) {
    for (const int ready : {0, 1}) context.send(rank.sync, RunEntry{ready, 1});
    context.sleep(std::chrono::milliseconds(50));
    EXPECT_THAT(rank.posted, ElementsAre("sum of shards", "sum of replicas"));
  });
}

}  // namespace
}  // namespace tutti
