#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <deque>

#include "actors/sync.h"
#include "collectives/local/group.h"
#include "io/journal/journal.h"
#include "runtime/actor/thread_scheduler.h"
#include "runtime/transport.h"
#include "sim/environment/local_transport.h"
#include "sim/environment/sim_scheduler.h"
#include "tests/runtime/actor/scripted_actor.h"

namespace tutti {
namespace {

double cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto s = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return s(usage.ru_utime) + s(usage.ru_stime);
}

// The other rank of a world of two: says its part only after `late`.
class LateRank final : public Actor {
 public:
  LateRank(Group& group, Nanoseconds late) : group_(group), late_(late) {}
  void start(Context& context) override {
    context.sleep(late_);
    work_ = group_.all_reduce(at::ones({1}, at::kDouble), "metrics");
    context.stop();
  }
  void receive(Context&, Envelope&) override {}

 private:
  Group& group_;
  Nanoseconds late_;
  WorkPtr work_;
};

class Asker final : public Actor {
 public:
  Asker(ActorId sync, double& sum) : sync_(sync), sum_(sum) {}
  void start(Context& context) override {
    const SumDoubles question{at::ones({1}, at::kDouble)};
    sum_ = context.ask<Summed>(sync_, question).values.item<double>();
    context.send(sync_, Stop{});
    context.stop();
  }
  void receive(Context&, Envelope&) override {}

 private:
  ActorId sync_;
  double& sum_;
};

TEST(SyncTest, WaitingTwoSecondsForASlowRankCostsLittle) {
  const auto fabric = LocalFabric::make(2);
  const std::shared_ptr<Group> mine = fabric->group(0), theirs = fabric->group(1);
  const auto transport = LocalNetwork(1).transport(0);
  RingRecorder recorder;
  ThreadScheduler scheduler;
  double sum = 0;
  const ActorId sync = scheduler.reserve("sync", 0), asker = scheduler.reserve("asker", 0);
  const ActorId late = scheduler.reserve("late", 1);
  scheduler.install(sync, std::make_unique<Sync>(Groups{mine}, *transport, asker, recorder));
  scheduler.install(late, std::make_unique<LateRank>(*theirs, std::chrono::seconds(2)));
  scheduler.install(asker, std::make_unique<Asker>(sync, sum));
  const double before = cpu_s();
  scheduler.run();
  EXPECT_EQ(sum, 2.0);
  EXPECT_LT(cpu_s() - before, 0.2);
}

// Brings one heartbeat of rank 1 after another, as often as it is looked at.
class ManyHeartbeats final : public Transport {
 public:
  explicit ManyHeartbeats(int packets) : left_(packets) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void send(int, std::string) override {}
  std::optional<Packet> poll() override {
    const int now = left_--;
    if (now <= 0 || now % 2 == 0) return std::nullopt;
    return Packet{1, "heartbeat 12 " + std::to_string(now) + " 0 " +
                         std::to_string(static_cast<int>(TraceKind::kMicrobatch))};
  }

 private:
  int left_;
};

// A Supervisor that first has something else to do for a simulated hour.
class BusySupervisor final : public Actor {
 public:
  BusySupervisor(ActorId sync, std::vector<double>& heard) : sync_(sync), heard_(heard) {}
  void start(Context& context) override { context.sleep(std::chrono::hours(1)); }
  void receive(Context& context, Envelope& envelope) override {
    heard_.push_back(envelope.message.get_if<Heartbeats>()->peers.at(1).last.age_s);
    context.reply(envelope, Noted{});
    if (heard_.size() < 2) return;
    context.send(sync_, Stop{});
    context.stop();
  }

 private:
  ActorId sync_;
  std::vector<double>& heard_;
};

TEST(SyncTest, HeartbeatsDoNotPileUpBeforeABusySupervisor) {
  const std::shared_ptr<Group> group = LocalFabric::make(1)->group(0);
  ManyHeartbeats transport(20'001);
  RingRecorder recorder;
  SimScheduler scheduler;
  std::vector<double> heard;
  const ActorId sync = scheduler.reserve("sync", 0), supervisor = scheduler.reserve("supervisor", 0);
  scheduler.install(sync, std::make_unique<Sync>(Groups{group}, transport, supervisor, recorder));
  scheduler.install(supervisor, std::make_unique<BusySupervisor>(sync, heard));
  scheduler.run();
  EXPECT_EQ(heard, (std::vector<double>{20'001, 1})) << "the first, and then the newest";
}

// The control network of rank 0 of three, whose others have said this. Looks at what was recorded when a
// packet of the Supervisor's leaves.
class WatchedPackets final : public Transport {
 public:
  WatchedPackets(const Recorder& recorder, std::deque<Packet> packets)
      : recorder_(recorder), packets_(std::move(packets)) {}
  int rank() const override { return 0; }
  int size() const override { return 3; }
  void send(int, std::string bytes) override {
    if (bytes == "stop") last_before_sending = recorder_.last(1).at(0).kind;
  }
  std::optional<Packet> poll() override {
    if (packets_.empty()) return std::nullopt;
    Packet packet = std::move(packets_.front());
    packets_.pop_front();
    return packet;
  }
  std::optional<TraceKind> last_before_sending;

 private:
  const Recorder& recorder_;
  std::deque<Packet> packets_;
};

TEST(SyncTest, PacketsOfSupervisorsAreRecordedAndHeartbeatsAreNot) {
  const std::shared_ptr<Group> group = LocalFabric::make(1)->group(0);
  RingRecorder recorder;
  WatchedPackets transport(
      recorder, {{1, "heartbeat 12 0.5 0 4"}, {2, "durable"}, {1, "finish"}, {2, "heartbeat 12 0 0 5"}});
  SimScheduler scheduler;
  const ActorId sync = scheduler.reserve("sync", 0), supervisor = scheduler.reserve("supervisor", 0);
  scheduler.install(sync, std::make_unique<Sync>(Groups{group}, transport, supervisor, recorder));
  int packets = 0, heard = 0;
  play(scheduler, supervisor,
       {.start =
            [&](Context& context) {
              context.send(sync, SendControl{1, "stop"});
            },
        .receive =
            [&](Context& context, Envelope& envelope) {
              packets += envelope.message.get_if<ControlReceived>() ? 1 : 0;
              if (envelope.message.get_if<Heartbeats>()) {
                ++heard;
                context.reply(envelope, Noted{});
              }
              if (packets < 2 || heard == 0) return;
              context.send(sync, Stop{});
              context.stop();
            }});
  scheduler.run();
  std::vector<std::string> recorded;
  for (const TraceEvent& one : recorder.last(100))
    recorded.push_back(name(one.kind) + (" " + std::to_string(one.detail)));
  EXPECT_THAT(recorded,
              testing::UnorderedElementsAre("control sent 1", "control received 2", "control received 1"));
  EXPECT_EQ(transport.last_before_sending, TraceKind::kControlSent);
}

}  // namespace
}  // namespace tutti
