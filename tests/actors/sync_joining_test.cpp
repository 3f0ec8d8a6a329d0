#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "actors/messages/heartbeat.h"
#include "actors/sync.h"
#include "collectives/local/group.h"
#include "runtime/actor/token_scheduler.h"
#include "runtime/transport.h"
#include "tests/runtime/actor/scripted_actor.h"
#include "tests/sim/planted_bugs/broken_group.h"

namespace tutti {
namespace {

// A group that is not ready, and whose memory is not there, until the test says so.
class ReadyLater final : public GroupBelow {
 public:
  using GroupBelow::GroupBelow;
  bool ready() override { return is_ready; }
  AllocationPtr allocate(int64_t bytes) override {
    return std::make_unique<Later>(GroupBelow::allocate(bytes), has_memory);
  }
  bool is_ready = false, has_memory = false;

 private:
  class Later final : public Allocation {
   public:
    Later(AllocationPtr below, const bool& has_memory) : below_(std::move(below)), has_memory_(has_memory) {}
    bool done() override { return has_memory_ && below_->done(); }
    const CollectiveHeader& header() const override { return below_->header(); }
    at::Tensor memory() const override { return below_->memory(); }

   private:
    AllocationPtr below_;
    const bool& has_memory_;
  };
};

// Keeps packets to rank 1.
class SentPackets final : public Transport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void send(int, std::string bytes) override { sent.push_back(std::move(bytes)); }
  std::optional<Packet> poll() override { return std::nullopt; }
  std::vector<std::string> sent;
};

TEST(SyncJoiningTest, WhileGroupsAndMemoryAreMadeTheRankIsHeardAndCountsAsWaiting) {
  const auto group = std::make_shared<ReadyLater>(LocalFabric::make(1)->group(0));
  SentPackets transport;
  RingRecorder recorder;
  TokenScheduler scheduler;
  const ActorId sync = scheduler.reserve("sync", 0), asker = scheduler.reserve("asker", 0);
  const ActorId supervisor = scheduler.reserve("supervisor", 0);
  scheduler.install(sync, std::make_unique<Sync>(transport, supervisor, recorder));
  scheduler.post(sync, Join{.topology = {.rank = 0, .world = 2}, .groups = {group}});
  play(scheduler, supervisor, {.receive = [](Context& context, Envelope& envelope) {
         if (envelope.message.get_if<Heartbeats>()) context.reply(envelope, Noted{});
         if (envelope.message.get_if<Stop>()) context.stop();
       }});
  // After two seconds and a packet: all heartbeats from the second on say that the rank waits.
  const auto expect_heard = [&](Context& context) {
    transport.sent.clear();
    context.sleep(std::chrono::seconds(2));
    context.send(sync, SendControl{1, "stop"});
    context.sleep(std::chrono::milliseconds(10));
    EXPECT_GE(transport.sent.size(), 4U);
    for (const std::string& packet : transport.sent)
      EXPECT_TRUE(packet == "stop" || parse_heartbeat(packet)->waiting) << packet;
  };
  play(scheduler, asker, {.start = [&](Context& context) {
         auto sum = context.request<Summed>(sync, SumDoubles{at::ones({1}, at::kDouble)});
         auto memory = context.request<MemoryAllocated>(sync, AllocateMemory{.bytes = {64, 0, 128}});
         expect_heard(context);
         EXPECT_FALSE(sum.ready());
         group->is_ready = true;
         EXPECT_TRUE(sum.ready_by(context.now() + std::chrono::milliseconds(10)));
         expect_heard(context);
         EXPECT_FALSE(memory.ready());
         group->has_memory = true;
         const auto taken = memory.wait().memory;
         ASSERT_EQ(taken.size(), 3U);
         EXPECT_EQ(taken[0].numel(), 64);
         EXPECT_EQ(taken[2].numel(), 128);
         context.send(sync, Stop{});
         context.send(supervisor, Stop{});
         context.stop();
       }});
  scheduler.run();
}

}  // namespace
}  // namespace tutti
