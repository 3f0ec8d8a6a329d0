#include "actors/supervisor/supervisor.h"

#include <gtest/gtest.h>

#include <numeric>

#include "actors/messages/control_text.h"
#include "runtime/actor/token_scheduler.h"
#include "tests/runtime/actor/scripted_actor.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using std::chrono::seconds;

// Rank 0's Supervisor, in simulated time, among actors that do what the test says; rank 1 is heard twice a
// second, as far as the Supervisor takes note of it.
class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() {
    actors_.loader = play_quietly("loader");
    actors_.checkpointer = scheduler_.reserve("checkpointer", 0);
    play(scheduler_, actors_.checkpointer, {.receive = [this](Context& context, Envelope& envelope) {
           if (envelope.message.get_if<Concluded>()) concluded_.push_back(context.now());
           if (envelope.message.get_if<Stop>()) context.stop();
         }});
    actors_.supervisor = scheduler_.reserve("supervisor", 0);
    actors_.sync = scheduler_.reserve("sync", 0);
    actors_.compute = scheduler_.reserve("compute", 0);
    play(scheduler_, actors_.sync,
         {.receive = [this](Context& c, Envelope& e) { sync(c, e); },
          .idle = [this](Context& c) { return beat(c); }});
  }

  void run(Nanoseconds hang_timeout) {
    job_.world = 2;
    job_.run_dir = folder_.path("run");
    job_.checkpoints = folder_.path("run/checkpoints");
    job_.nonce = "nonce";
    job_.settings.train.hang_timeout = hang_timeout;
    disk_.scheduler = &scheduler_;
    scheduler_.install(actors_.supervisor, std::make_unique<Supervisor>(job_, Supervisor::Place{""}, actors_,
                                                                        disk_, *log_, recorder_, end_));
    scheduler_.post(actors_.supervisor, Join{.topology = {.rank = rank_, .world = 2}});
    scheduler_.run();
  }

  static Script until_stopped() {
    return {.receive = [](Context& context, Envelope& envelope) {
      if (envelope.message.get_if<Stop>()) context.stop();
    }};
  }

  ActorId play_quietly(const char* name) {
    const ActorId id = scheduler_.reserve(name, 0);
    play(scheduler_, id, until_stopped());
    return id;
  }

  // All ranks' parts of a checkpoint are there, after so long; then training takes so long.
  void train_and_publish(Nanoseconds before, Nanoseconds after) {
    play(scheduler_, actors_.compute, {.receive = [=, this](Context& context, Envelope& envelope) {
           if (envelope.message.get_if<Prepare>()) context.send(actors_.supervisor, Prepared{});
           if (envelope.message.get_if<Stop>()) context.stop();
           if (!envelope.message.get_if<Start>()) return;
           context.sleep(before);
           Durable part;
           part.name = "ep1-ba1";
           context.send(actors_.supervisor, Durable(part));
           context.send(actors_.supervisor, ControlReceived{1, durable_text(part)});
           context.sleep(after);
           context.send(actors_.supervisor, TrainingDone{});
         }});
  }

  void sync(Context& context, Envelope& envelope) {
    if (auto* said = envelope.message.get_if<Agree>())
      context.send(actors_.supervisor, Agreed{{rank_ == 0 ? said->statement : first_says_, {}}});
    if (envelope.message.get_if<SendControl>()) {
      told_ = context.now();
      if (envelope.slot) context.reply(envelope, ControlSent{});
    }
    if (envelope.message.get_if<Stop>()) context.stop();
  }

  std::optional<TimePoint> beat(Context& context) {
    if (play_dead_ || (noting_ && !noting_.ready())) return context.now() + std::chrono::milliseconds(10);
    Heartbeats heard;
    const bool all_wait = context.now() < all_wait_until_;
    heard.peers[1 - rank_] = {context.now(), {TraceKind::kMicrobatch, 3, 0.1, all_wait}};
    if (all_wait_until_ != TimePoint{}) heard.peers[rank_] = heard.peers[1 - rank_];
    noting_ = context.request<Noted>(actors_.supervisor, std::move(heard));
    return context.now() + std::chrono::milliseconds(500);
  }

  struct PublishingDisk final : PosixDisk {
    std::unique_ptr<WritableFile> open(const std::string& path, bool truncate) override {
      if (path.find("/.ep") != std::string::npos) scheduler->spend(publishing);
      return PosixDisk::open(path, truncate);
    }
    TokenScheduler* scheduler = nullptr;
    Nanoseconds publishing{0};  // what it takes
  };

  Scratch folder_;
  Job job_;
  PublishingDisk disk_;
  std::unique_ptr<Log> log_ = make_null_log();
  RingRecorder recorder_;
  EndKind end_ = EndKind::kDone;
  TokenScheduler scheduler_;
  RankActors actors_;
  Pending<Noted> noting_;
  bool play_dead_ = false;      // the other rank
  TimePoint all_wait_until_{};  // with ranks that wait for each other: until then
  int rank_ = 0;
  Statement first_says_;     // where this is rank 1
  TimePoint told_ = kNever;  // the other rank
  std::vector<TimePoint> concluded_;
};

constexpr Nanoseconds kTimeout = seconds(1);

// A log for whose records a checkpoint waits; `takes`: the time of each wait.
class DurableLogsTest : public SupervisorTest {
 protected:
  void add_log(Nanoseconds takes, Nanoseconds timeout = kTimeout,
               const std::string& name = "logger CsvLogger") {
    add_log([takes] { return takes; }, timeout, name);
  }

  void add_log(const std::function<Nanoseconds()>& takes, Nanoseconds timeout = kTimeout,
               const std::string& name = "logger CsvLogger") {
    const ActorId id = scheduler_.reserve("logger_" + std::to_string(actors_.logs.size()), 0);
    actors_.logs.push_back({.writer = id, .name = name, .sync_timeout = timeout});
    play(scheduler_, id, {.receive = [this, takes](Context& context, Envelope& envelope) {
           if (envelope.message.get_if<FinishLog>()) return context.stop();
           ++asked_;
           context.sleep(takes());
           written_ = context.now();
           context.reply(envelope, LogSynced{});
         }});
  }

  // Publishes `count` checkpoints, one every `apart`; returns the time of each.
  std::vector<Nanoseconds> publish(int count, Nanoseconds apart) {
    std::vector<TimePoint> began;
    play(scheduler_, actors_.compute, {.receive = [&, count, apart](Context& context, Envelope& envelope) {
           if (envelope.message.get_if<Prepare>()) context.send(actors_.supervisor, Prepared{});
           if (envelope.message.get_if<Stop>()) context.stop();
           if (!envelope.message.get_if<Start>()) return;
           for (int i = 0; i < count; ++i) {
             began.push_back(context.now());
             Durable part;
             part.name = "ep1-ba" + std::to_string(i + 1);
             context.send(actors_.supervisor, Durable(part));
             if (rank_ == 0) context.send(actors_.supervisor, ControlReceived{1, durable_text(part)});
             context.sleep(apart);
           }
           context.send(actors_.supervisor, TrainingDone{});
         }});
    run(seconds(60));
    std::vector<Nanoseconds> took;
    for (std::size_t i = 0; i < concluded_.size(); ++i) took.push_back(concluded_[i] - began[i]);
    return took;
  }

  struct Warned final : Log {
    explicit Warned(std::string& all) : all(all) {}
    void write(LogLevel, const std::string& line) override { all += line + "\n"; }
    void flush() override {}
    std::string& all;
  };

  int asked_ = 0;
  TimePoint written_ = kNever;
  std::string warnings_;
};

TEST_F(DurableLogsTest, ACheckpointWaitsForALogButNotForLong) {
  add_log(std::chrono::milliseconds(600));
  const auto took = publish(2, seconds(5));
  ASSERT_EQ(took.size(), 2u);
  for (const Nanoseconds one : took) {
    EXPECT_GE(one, std::chrono::milliseconds(600));
    EXPECT_LE(one, std::chrono::milliseconds(700));
  }
}

TEST_F(DurableLogsTest, ASilentLogCostsASecondAndIsAskedOnce) {
  add_log(std::chrono::hours(1));
  const auto took = publish(300, std::chrono::milliseconds(100));  // more than a mailbox holds
  ASSERT_EQ(took.size(), 300u);
  EXPECT_EQ(asked_, 1);
  EXPECT_GE(took.front(), kTimeout);
  EXPECT_LE(took.back(), std::chrono::milliseconds(100));
}

TEST_F(DurableLogsTest, ALateLogIsNotWaitedForAgainAndNamedOnce) {
  log_ = std::make_unique<Warned>(warnings_);
  add_log(seconds(3));
  const auto took = publish(31, seconds(5));
  ASSERT_EQ(took.size(), 31u);
  EXPECT_GE(took[0], kTimeout);
  const Nanoseconds all = std::accumulate(took.begin(), took.end(), Nanoseconds(0));
  EXPECT_LE(all, kTimeout + 31 * (DurableLogs::kLateTimeout + std::chrono::milliseconds(10)));
  EXPECT_EQ(warnings_.find("does not wait for"), warnings_.rfind("does not wait for"));
  EXPECT_NE(warnings_.find("checkpoint ep1-ba1 does not wait for logger CsvLogger"), std::string::npos);
}

TEST_F(DurableLogsTest, ALogThatKeepsUpAgainIsWaitedForAgain) {
  log_ = std::make_unique<Warned>(warnings_);
  add_log([this] { return std::chrono::milliseconds(asked_ == 1 ? 3000 : asked_ < 4 ? 10 : 600); });
  const auto took = publish(4, seconds(5));
  ASSERT_EQ(took.size(), 4u);
  EXPECT_GE(took[0], kTimeout);
  EXPECT_GE(took[3], std::chrono::milliseconds(600));
  EXPECT_EQ(warnings_.find("does not wait for"), warnings_.rfind("does not wait for"));
}

TEST_F(DurableLogsTest, ALogOfAProcessThatStoodStillIsNotLate) {
  log_ = std::make_unique<Warned>(warnings_);
  add_log([this] {
    scheduler_.suspend(0, scheduler_.now() + seconds(7));
    return std::chrono::milliseconds(600);
  });
  const auto took = publish(1, seconds(5));
  ASSERT_EQ(took.size(), 1u);
  EXPECT_GE(took[0], seconds(7));
  EXPECT_EQ(warnings_.find("does not wait for"), std::string::npos) << warnings_;
}

TEST_F(DurableLogsTest, ASlowLogLeavesAnotherItsTime) {
  log_ = std::make_unique<Warned>(warnings_);
  add_log(seconds(3), kTimeout, "the slow one");
  add_log(std::chrono::milliseconds(90), kTimeout, "the quick one");
  EXPECT_EQ(publish(60, seconds(2)).size(), 60u);
  EXPECT_NE(warnings_.find("does not wait for the slow one"), std::string::npos);
  EXPECT_EQ(warnings_.find("does not wait for the quick one"), std::string::npos);
}

TEST_F(DurableLogsTest, AnotherRankReportsItsPartOnceItsOwnLogsAreWritten) {
  rank_ = 1;
  first_says_.text = ControlText({"", ""}).text();
  disk_.make_folders(folder_.path("run"));
  write_text(folder_.path("run/.nonce"), "nonce");
  add_log(std::chrono::milliseconds(600));
  publish(1, seconds(5));
  ASSERT_NE(told_, kNever);
  EXPECT_NE(written_, kNever);
  EXPECT_GE(told_, written_);
}

TEST_F(DurableLogsTest, LogsHaveTheirOwnTimeouts) {
  add_log(seconds(3), seconds(5));
  add_log(std::chrono::hours(1));
  const auto took = publish(1, seconds(10));
  ASSERT_EQ(took.size(), 1u);
  EXPECT_GE(took[0], seconds(3));
  EXPECT_LE(took[0], std::chrono::milliseconds(3100));
}

// A checkpoint is published, and the disk takes its time; the others were well all along.
TEST_F(SupervisorTest, ABusySupervisorBlamesNoRankForSilence) {
  disk_.publishing = seconds(10);
  train_and_publish(Nanoseconds(0), seconds(20));
  EXPECT_NO_THROW(run(seconds(3)));
  ASSERT_EQ(concluded_.size(), 1u);
  EXPECT_GE(concluded_[0], TimePoint(seconds(10))) << "it was not busy: this proves nothing";
}

// All ranks wait for each other for a moment, and the Supervisor hears of what came then ten seconds later.
TEST_F(SupervisorTest, ABusySupervisorReportsNoHang) {
  disk_.publishing = seconds(10);
  all_wait_until_ = TimePoint(std::chrono::milliseconds(2800));
  train_and_publish(std::chrono::milliseconds(2400), seconds(20));
  EXPECT_NO_THROW(run(seconds(3)));
  ASSERT_EQ(concluded_.size(), 1u);
  EXPECT_GE(concluded_[0], TimePoint(seconds(10))) << "it was not busy: this proves nothing";
}

EndKind end_kind_of(const std::function<void()>& run) try {
  run();
  return EndKind::kDone;
} catch (const Aborted& aborted) {
  return aborted.kind();
}

TEST_F(SupervisorTest, RanksThatAllWaitForLongAreACollectiveThatHangs) {
  all_wait_until_ = kNever;
  train_and_publish(std::chrono::milliseconds(2400), seconds(20));
  EXPECT_EQ(end_kind_of([&] { run(seconds(3)); }), EndKind::kHang);
}

TEST_F(SupervisorTest, ARankThatIsNotHeardIsBlamed) {
  play(scheduler_, actors_.compute, {.receive = [this](Context& context, Envelope& envelope) {
         if (envelope.message.get_if<Prepare>()) context.send(actors_.supervisor, Prepared{});
         if (!envelope.message.get_if<Start>()) return;
         play_dead_ = true;
       }});
  EXPECT_EQ(end_kind_of([&] { run(seconds(3)); }), EndKind::kHang);
}

}  // namespace
}  // namespace tutti
