#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <deque>
#include <limits>
#include <map>

#include "actors/sync.h"
#include "collectives/local/group.h"
#include "collectives/local/transport.h"
#include "io/journal/journal.h"
#include "runtime/actor/scheduler.h"
#include "runtime/actor/token_scheduler.h"
#include "runtime/transport.h"
#include "tests/runtime/actor/scripted_actor.h"
#include "tests/sim/planted_bugs/broken_group.h"

namespace tutti {
namespace {

// Its first message is a Join with these groups.
void install_sync(Scheduler& scheduler, ActorId sync, Transport& transport, ActorId supervisor,
                  Recorder& recorder, Groups groups, const RankTopology& place = {}) {
  scheduler.install(sync, std::make_unique<Sync>(transport, supervisor, recorder));
  scheduler.post(sync, Join{.topology = place, .groups = std::move(groups)});
}

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
  install_sync(scheduler, sync, *transport, asker, recorder, Groups{mine});
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

// A Supervisor that is busy for a simulated hour.
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
  TokenScheduler scheduler;
  std::vector<double> heard;
  const ActorId sync = scheduler.reserve("sync", 0), supervisor = scheduler.reserve("supervisor", 0);
  install_sync(scheduler, sync, transport, supervisor, recorder, Groups{group});
  scheduler.install(supervisor, std::make_unique<BusySupervisor>(sync, heard));
  scheduler.run();
  EXPECT_EQ(heard, (std::vector<double>{20'001, 1})) << "the first, and then the newest";
}

// The control network of rank 0 of three, with packets from the other ranks. Checks the record when a packet
// of the Supervisor leaves.
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
  TokenScheduler scheduler;
  const ActorId sync = scheduler.reserve("sync", 0), supervisor = scheduler.reserve("supervisor", 0);
  install_sync(scheduler, sync, transport, supervisor, recorder, Groups{group});
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

// All-reduces in short steps, one per poll.
class InShortSteps final : public GroupBelow {
 public:
  InShortSteps(std::unique_ptr<Group> below, int steps) : GroupBelow(std::move(below)), left_(steps) {}
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override {
    return std::make_unique<Steps>(GroupBelow::all_reduce(inout, label), *this);
  }
  int64_t moves() const override { return -left_; }

 private:
  class Steps final : public Work {
   public:
    Steps(WorkPtr below, InShortSteps& group) : below_(std::move(below)), group_(group) {}
    bool done() override { return group_.left_ == 0 ? below_->done() : (--group_.left_, false); }
    const CollectiveHeader& header() const override { return below_->header(); }
    bool finite() const override { return below_->finite(); }

   private:
    WorkPtr below_;
    InShortSteps& group_;
  };
  int64_t left_;
};

TEST(SyncTest, ACollectiveThatMovesOnIsPolledOften) {
  const std::shared_ptr<Group> group = std::make_shared<InShortSteps>(LocalFabric::make(1)->group(0), 1000);
  const auto transport = LocalNetwork(1).transport(0);
  RingRecorder recorder;
  TokenScheduler scheduler;
  const ActorId sync = scheduler.reserve("sync", 0), asker = scheduler.reserve("asker", 0);
  install_sync(scheduler, sync, *transport, asker, recorder, Groups{group});
  double waited_s = -1;
  play(scheduler, asker, {.start = [&](Context& context) {
         const TimePoint asked = context.now();
         context.ask<Summed>(sync, SumDoubles{at::ones({1}, at::kDouble)});
         waited_s = tutti::seconds(context.now() - asked);
         context.send(sync, Stop{});
         context.stop();
       }});
  scheduler.run();
  EXPECT_GE(waited_s, 0);
  EXPECT_LE(waited_s, 0.1);  // at the longest interval it is 2 s
}

// Notes how many gathers were posted.
class CountsGathers final : public GroupBelow {
 public:
  using GroupBelow::GroupBelow;
  WorkPtr all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override {
    ++gathers;
    return GroupBelow::all_gather(input, out, cut, label);
  }
  int gathers = 0;
};

TEST(SyncTest, ARankThatServesPostsAFewEntriesAtATime) {
  constexpr int kAll = 100;
  const auto fabric = LocalFabric::make(2);
  const auto group = std::make_shared<CountsGathers>(fabric->group(0));
  const std::unique_ptr<Group> other = fabric->group(1);
  const auto transport = LocalNetwork(1).transport(0);
  RingRecorder recorder;
  TokenScheduler scheduler;
  const ActorId sync = scheduler.reserve("sync", 0), asker = scheduler.reserve("asker", 0);
  install_sync(scheduler, sync, *transport, asker, recorder, Groups{group});
  const CutPtr cut = Cut::even(2, 1);
  int posted_at_once = 0;
  play(scheduler, asker, {.start = [&](Context& context) {
         SetPlan plan;
         for (int i = 0; i < kAll; ++i)
           plan.entries.push_back({.kind = CollectiveKind::kAllGather, .part = at::ones({1}), .cut = cut});
         context.send(sync, std::move(plan));
         auto done = context.request<PassDone>(sync, FinishStep{0});
         context.sleep(std::chrono::seconds(1));
         posted_at_once = group->gathers;
         for (int i = 0; i < kAll; ++i) other->all_gather(at::ones({1}), {}, cut, "");
         done.wait();
         context.send(sync, Stop{});
         context.stop();
       }});
  scheduler.run();
  EXPECT_GT(posted_at_once, 1);
  EXPECT_LE(posted_at_once, 10);
  EXPECT_EQ(group->gathers, kAll);
}

// Sync of rank 0 of two; the test holds the other rank's groups.
struct TwoGroups {
  std::shared_ptr<LocalFabric> world = LocalFabric::make(2), gathers = LocalFabric::make(2);
  std::unique_ptr<Group> other = world->group(1), other_gathers = gathers->group(1);
  std::unique_ptr<Transport> transport = LocalNetwork(1).transport(0);
  RingRecorder recorder;
  TokenScheduler scheduler;
  ActorId sync = scheduler.reserve("sync", 0), compute = scheduler.reserve("compute", 0);
  at::Tensor sum = at::ones({3}), whole = at::zeros({5}), rows = at::full({2}, 7.0);
  const CutPtr cut =
      std::make_shared<Cut>(std::vector<std::vector<ElementRange>>{{{0, 1}, {3, 4}}, {{1, 3}, {4, 5}}});

  void run(const std::function<void(Context&)>& start) {
    install_sync(scheduler, sync, *transport, compute, recorder, Groups{world->group(0), gathers->group(0)});
    play(scheduler, compute, {.start = [&](Context& context) {
           SetPlan plan;
           plan.entries.push_back({.whole = sum, .label = "sum"});
           plan.entries.push_back({.kind = CollectiveKind::kAllGather,
                                   .group = GroupRole::kGathers,
                                   .whole = whole,
                                   .part = rows,
                                   .cut = cut,
                                   .label = "rows"});
           context.send(sync, std::move(plan));
           start(context);
           context.send(sync, Stop{});
           context.stop();
         }});
    scheduler.run();
  }
  void post_sum() { works.push_back(other->all_reduce(at::ones({3}), "sum")); }
  void post_rows() {
    works.push_back(other_gathers->all_gather(at::arange(3).to(at::kFloat), theirs, cut, "rows"));
  }
  at::Tensor theirs = at::zeros({5});
  std::vector<WorkPtr> works;
};

TEST(SyncTest, AGatherDoesNotWaitForASumThatBeganBefore) {
  TwoGroups ranks;
  ranks.run([&](Context& context) {
    ranks.post_rows();
    context.send(ranks.sync, RunEntry{0, 1});
    context.send(ranks.sync, RunEntry{1, 1});
    context.ask<EntryDone>(ranks.sync, AwaitEntry{1});
    EXPECT_TRUE(ranks.whole.equal(at::tensor({7.f, 0.f, 1.f, 7.f, 2.f})));
    EXPECT_TRUE(ranks.sum.equal(at::ones({3}))) << "the other rank has no part in it yet";
    ranks.post_sum();
    EXPECT_TRUE(context.ask<PassDone>(ranks.sync, FinishStep{1}).finite);
    EXPECT_TRUE(ranks.sum.equal(at::full({3}, 2.0)));
  });
}

TEST(SyncTest, AnEntryMayWaitForOneOfAnotherGroup) {
  TwoGroups ranks;
  ranks.run([&](Context& context) {
    SetPlan plan;
    plan.entries.push_back({.whole = ranks.sum, .label = "sum"});
    plan.entries.push_back({.kind = CollectiveKind::kAllGather,
                            .group = GroupRole::kGathers,
                            .whole = ranks.whole,
                            .part = ranks.rows,
                            .cut = ranks.cut,
                            .after = 0,
                            .label = "rows"});
    context.send(ranks.sync, std::move(plan));
    for (int pass = 1; pass <= 2; ++pass) {
      ranks.theirs.zero_();
      ranks.post_rows();
      context.send(ranks.sync, RunEntry{1, pass});
      context.send(ranks.sync, RunEntry{0, pass});
      context.sleep(std::chrono::milliseconds(50));
      EXPECT_TRUE(ranks.theirs.equal(at::zeros({5}))) << "the sum is not done";
      ranks.post_sum();
      context.ask<PassDone>(ranks.sync, FinishStep{pass});
      EXPECT_TRUE(ranks.theirs.equal(at::tensor({7.f, 0.f, 1.f, 7.f, 2.f})));
    }
  });
}

TEST(SyncTest, AGatherMayHaveAnotherDestinationInEachPass) {
  TwoGroups ranks;
  ranks.run([&](Context& context) {
    for (int pass = 1; pass <= 3; ++pass) {
      const at::Tensor mine = at::zeros({5});
      ranks.whole.zero_();
      ranks.post_rows();
      ranks.post_sum();
      context.send(ranks.sync, RunEntry{1, pass, pass == 2 ? mine : at::Tensor()});
      EXPECT_TRUE(context.ask<EntryDone>(ranks.sync, AwaitEntry{1}).finite);
      const at::Tensor wanted = at::tensor({7.f, 0.f, 1.f, 7.f, 2.f});
      EXPECT_EQ(mine.equal(wanted), pass == 2);
      EXPECT_EQ(ranks.whole.equal(wanted), pass != 2) << "the plan's own";
      context.ask<PassDone>(ranks.sync, FinishStep{pass});
    }
  });
}

class DigestRecorder final : public Recorder {
 public:
  void record(const TraceEvent&) override {}
  std::vector<TraceEvent> last(int) const override { return {}; }
  bool digests() const override { return true; }
  void digest(const Digest& one) override { values[std::string(one.key)] = one.value; }
  std::map<std::string, uint64_t> values;
};

TEST(SyncTest, TheDigestOfAScatteredSumIsThatOfThisRanksPart) {
  const auto world = LocalFabric::make(2);
  const auto other = world->group(1);
  const auto transport = LocalNetwork(1).transport(0);
  DigestRecorder recorder, wanted;
  TokenScheduler scheduler;
  const ActorId sync = scheduler.reserve("sync", 0), compute = scheduler.reserve("compute", 0);
  install_sync(scheduler, sync, *transport, compute, recorder, Groups{world->group(0)});
  const CutPtr cut = Cut::even(2, 3);
  const at::Tensor part = at::zeros({3}), theirs = at::zeros({3});
  const WorkPtr work =
      other->reduce_scatter(at::arange(6).to(at::kFloat), theirs, cut, "gradients of a unit");
  const std::vector<DigestPart> names{{"weight", 0, 8}, {"bias", 8, 12}};
  play(scheduler, compute, {.start = [&](Context& context) {
         SetPlan plan;
         plan.entries.push_back({.kind = CollectiveKind::kReduceScatter,
                                 .whole = at::ones({6}),
                                 .part = part,
                                 .cut = cut,
                                 .label = "gradients of a unit",
                                 .parts = names});
         context.send(sync, std::move(plan));
         context.ask<PassDone>(sync, FinishStep{1});
         context.send(sync, Stop{});
         context.stop();
       }});
  scheduler.run();
  EXPECT_TRUE(part.equal(at::tensor({1.f, 2.f, 3.f})));
  WindowedDigest("sync/gradients of a unit", names, wanted).record(1, part);
  EXPECT_EQ(recorder.values, wanted.values);
  EXPECT_EQ(recorder.values.size(), 1U);
}

TEST(SyncTest, ASumOverShardsIsThatOfTheRanksThatShare) {
  const auto world = LocalFabric::make(2), shards = LocalFabric::make(2);
  const auto others = shards->group(1), elsewhere = world->group(1);
  const auto transport = LocalNetwork(1).transport(0);
  RingRecorder recorder;
  TokenScheduler scheduler;
  const ActorId sync = scheduler.reserve("sync", 0), compute = scheduler.reserve("compute", 0);
  Groups groups{world->group(0)};
  groups[static_cast<std::size_t>(GroupRole::kReductions)] = shards->group(0);
  install_sync(scheduler, sync, *transport, compute, recorder, groups);
  const WorkPtr theirs = others->all_reduce(at::full({3}, 0.5, at::kDouble), "sum over shards");
  const WorkPtr of_world = elsewhere->all_reduce(at::full({3}, 100.0, at::kDouble), "metrics");
  play(scheduler, compute, {.start = [&](Context& context) {
         const SumDoubles question{at::ones({3}, at::kDouble), GroupRole::kReductions};
         EXPECT_TRUE(context.ask<Summed>(sync, question).values.equal(at::full({3}, 1.5, at::kDouble)));
         context.send(sync, Stop{});
         context.stop();
       }});
  scheduler.run();
}

TEST(SyncTest, TheEndOfAStepRunsWhatIsLeftInEveryPass) {
  TwoGroups ranks;
  ranks.run([&](Context& context) {
    for (int pass = 1; pass <= 2; ++pass) {
      ranks.sum.fill_(pass == 1 ? 1 : std::numeric_limits<float>::infinity());
      ranks.post_sum();
      ranks.post_rows();
      EXPECT_EQ(context.ask<PassDone>(ranks.sync, FinishStep{pass}).finite, pass == 1);
      EXPECT_TRUE(ranks.theirs.equal(at::tensor({7.f, 0.f, 1.f, 7.f, 2.f})));
      ranks.theirs.zero_();
    }
  });
}

}  // namespace
}  // namespace tutti
