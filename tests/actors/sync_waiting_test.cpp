#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "actors/sync.h"
#include "collectives/local_group.h"
#include "runtime/lone_transport.h"
#include "runtime/thread_scheduler.h"
#include "sim/sim_scheduler.h"

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
  const auto mine = fabric->group(0), theirs = fabric->group(1);
  LoneTransport transport;
  RingRecorder recorder;
  ThreadScheduler scheduler;
  double sum = 0;
  const ActorId sync = scheduler.reserve("sync", 0), asker = scheduler.reserve("asker", 0);
  const ActorId late = scheduler.reserve("late", 1);
  scheduler.install(sync, std::make_unique<Sync>(*mine, transport, asker, recorder));
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
    return Packet{1, "heartbeat 12 " + std::to_string(now) + " 0 forward"};
  }

 private:
  int left_;
};

// A Supervisor that first has something else to do for a made-up hour.
class BusySupervisor final : public Actor {
 public:
  BusySupervisor(ActorId sync, std::vector<double>& heard) : sync_(sync), heard_(heard) {}
  void start(Context& context) override { context.sleep(std::chrono::hours(1)); }
  void receive(Context& context, Envelope& envelope) override {
    heard_.push_back(envelope.message.get_if<Heard>()->peers.at(1).last.age_s);
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
  const auto group = LocalFabric::make(1)->group(0);
  ManyHeartbeats transport(20'001);
  RingRecorder recorder;
  SimScheduler scheduler;
  std::vector<double> heard;
  const ActorId sync = scheduler.reserve("sync", 0), supervisor = scheduler.reserve("supervisor", 0);
  scheduler.install(sync, std::make_unique<Sync>(*group, transport, supervisor, recorder));
  scheduler.install(supervisor, std::make_unique<BusySupervisor>(sync, heard));
  scheduler.run();
  EXPECT_EQ(heard, (std::vector<double>{20'001, 1})) << "the first, and then the newest";
}

}  // namespace
}  // namespace tutti
