#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <sstream>

#include "actors/logging/log_queue.h"
#include "actors/logging/log_writer.h"
#include "actors/supervisor/supervisor.h"
#include "commands/local_train.h"
#include "runtime/actor/scheduler.h"
#include "runtime/actor/token_scheduler.h"
#include "tests/actors/memory_world.h"
#include "tests/actors/sleeping_world.h"
#include "tests/runtime/actor/scripted_actor.h"
#include "training/loggers/in_memory.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::SizeIs;

// 3 batches an epoch, evaluated at its end.
std::string logging_recipe(const std::string& more, const std::string& train = "") {
  const std::string data = "kind = 'synthetic'\nsamples = 24\nbatch_size = 8\nshape = [3]\n";
  return "seed = 1\n[model]\nkind = 'mlp'\nhidden = [4]\n[data.train]\n" + data + "[data.eval]\n" + data +
         "[optimizer]\nkind = 'sgd'\nlr = 0.25\n[checkpoint]\ninterval = '4ba'\n[train]\n"
         "max_duration = '4ep'\n" +
         train + more;
}

void log_run(const std::string& recipe, const std::string& run_dir, const Listeners& listeners = {},
             const std::string& resume = "") {
  LocalRunOptions options;
  options.run_dir = run_dir;
  options.resume = resume;
  options.quiet = true;
  options.prepare = [&](Job& job) { job.listeners = listeners; };
  train_in_one_process(recipe_of(recipe), options);
}

Listeners with(std::shared_ptr<LoggerDestination> destination) {
  return [destination](int) { return Engine::Options{.destinations = {destination}}; };
}

std::vector<double> values(const InMemoryLogger& memory, const std::string& name) {
  std::vector<double> found;
  for (const auto& point : memory.get_timeseries(name)) found.push_back(point.value);
  return found;
}

// The value column of a CSV's rows of that name.
std::vector<double> values(const std::string& csv, const std::string& name) {
  std::vector<double> found;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);)
    if (const auto at = line.find("," + name + ","); at != std::string::npos)
      found.push_back(std::stod(line.substr(at + name.size() + 2)));
  return found;
}

TEST(LoggersTest, ALoggerOfTheProgramWorksBesideThoseOfTheRecipe) {
  const Scratch folder;
  const auto memory = std::make_shared<InMemoryLogger>();
  log_run(logging_recipe("[[loggers]]\nkind = 'csv'\n[[loggers]]\nkind = 'file'\n[[callbacks]]\nkind = "
                         "'lr_monitor'\n"),
          folder.path("run"), with(memory));
  const std::string csv = read_text(folder.path("run/metrics-rank0.csv"));
  for (const char* name : {"loss/train/total", "metrics/train/MulticlassAccuracy",
                           "metrics/eval/CrossEntropy", "lr-SGD/group0", "time/batch"}) {
    EXPECT_THAT(values(*memory, name), SizeIs(testing::Ge(4u))) << name;
    EXPECT_EQ(values(*memory, name), values(csv, name)) << name;
  }
  EXPECT_THAT(read_text(folder.path("run/logs-rank0.txt")),
              HasSubstr("[hyperparameter][step=1][batch=0]: rank_zero_seed: 1\n"));
  EXPECT_FALSE(PosixDisk().exists(folder.path("run/logs-rank1.txt")));
}

TEST(LoggersTest, EveryRankWritesWhereAskedTo) {
  const Scratch folder;
  log_run(logging_recipe("[[loggers]]\nkind = 'csv'\nrank_zero_only = false\n"), folder.path("run"));
  const std::string first = read_text(folder.path("run/metrics-rank0.csv"));
  EXPECT_THAT(values(first, "loss/train/total"), SizeIs(12));
  EXPECT_EQ(read_text(folder.path("run/metrics-rank1.csv")), first);
}

TEST(LoggersTest, LogsTheLossAndTheTimesOfEveryBatch) {
  const Scratch folder;
  const auto memory = std::make_shared<InMemoryLogger>();
  log_run(logging_recipe(""), folder.path("run"), with(memory));
  EXPECT_THAT(values(*memory, "time/batch"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_THAT(values(*memory, "time/sample").back(), 96);
  EXPECT_THAT(values(*memory, "time/epoch"), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(values(*memory, "time/token"), ElementsAre());
  EXPECT_THAT(values(*memory, "trainer/device_train_microbatch_size"), testing::Each(4));
  std::vector<double> losses;
  std::istringstream lines(read_text(folder.path("run/metrics.jsonl")));
  for (std::string line; std::getline(lines, line);)
    if (const auto at = line.find("\"loss\": "); at != std::string::npos)
      losses.push_back(std::stof(line.substr(at + 8)));
  const auto logged = values(*memory, "loss/train/total");
  ASSERT_EQ(logged.size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_EQ(static_cast<float>(logged[i]), losses[i]) << i;
}

TEST(LoggersTest, TheRecipeIsLoggedWhereAskedForAlone) {
  const Scratch folder;
  const auto memory = std::make_shared<InMemoryLogger>();
  log_run(logging_recipe("[[callbacks]]\nkind = 'lr_monitor'\n", "auto_log_hparams = true\n"),
          folder.path("run"), with(memory));
  EXPECT_THAT(memory->hyperparameters(),
              AllOf(Contains(Pair("rank_zero_seed", Hyperparameter(int64_t{1}))),
                    Contains(Pair("optimizer.lr", Hyperparameter(0.25))),
                    Contains(Pair("train.max_duration", Hyperparameter(std::string("4ep")))),
                    Contains(Pair("train.auto_log_hparams", Hyperparameter(true))),
                    Contains(Pair("model.hidden", Hyperparameter(std::string("[4]")))),
                    Contains(Pair("callbacks.0.kind", Hyperparameter(std::string("lr_monitor"))))));
  for (const char* train : {"", "auto_log_hparams = false\n"}) {
    const auto unasked = std::make_shared<InMemoryLogger>();
    log_run(logging_recipe("", train), folder.path("unasked"), with(unasked));
    EXPECT_THAT(unasked->hyperparameters(), ElementsAre(Pair("rank_zero_seed", Hyperparameter(int64_t{1}))));
    PosixDisk().remove_all(folder.path("unasked"));
  }
}

class Idle final : public Algorithm {
 public:
  std::string name() const override { return "Idle"; }
  bool match(Event event, const State&) const override { return event == Event::kBatchEnd; }
  void apply(Event, State&, Logger&) override {}
};

TEST(LoggersTest, TracesAreLoggedWhereAskedFor) {
  for (const char* wanted : {"true", "false"}) {
    const Scratch folder;
    const auto memory = std::make_shared<InMemoryLogger>();
    log_run(logging_recipe("", "log_traces = " + std::string(wanted) + "\n"), folder.path("run"), [&](int) {
      return Engine::Options{.algorithms = {std::make_shared<Idle>()}, .destinations = {memory}};
    });
    EXPECT_THAT(values(*memory, "algorithm_traces/Idle/batch_end"),
                SizeIs(std::string(wanted) == "true" ? 12 : 0));
    EXPECT_THAT(values(*memory, "algorithm_traces/Idle/batch_start"), IsEmpty()) << "it did not match";
  }
}

// Ends a run badly in its eleventh batch.
class Crash final : public Callback {
 public:
  std::string name() const override { return "Crash"; }
  void after_train_batch(State& state, Logger&) override {
    if (state.timestamp.batch == 10) throw OperatingError("crash");
  }
};

TEST(LoggersTest, ARunThatResumesLogsWhatAnUninterruptedOneDoes) {
  const Scratch folder;
  const std::string recipe = logging_recipe(
      "[[loggers]]\nkind = 'csv'\n[[loggers]]\nkind = 'file'\n[[loggers]]\nkind = 'jsonl'\n"
      "[[callbacks]]\nkind = 'lr_monitor'\n");
  log_run(recipe, folder.path("whole"));
  const Listeners crash = [](int) { return Engine::Options{.callbacks = {std::make_shared<Crash>()}}; };
  EXPECT_THROW(log_run(recipe, folder.path("parts"), crash), std::exception);
  log_run(recipe, folder.path("parts"), {}, "auto");
  EXPECT_EQ(read_text(folder.path("parts/metrics-rank0.csv")),
            read_text(folder.path("whole/metrics-rank0.csv")));
  for (const char* file : {"logs-rank0.txt", "logs-rank0.jsonl"}) {  // which have every attempt's seed
    std::istringstream lines(read_text(folder.path("parts/" + std::string(file))));
    std::string text;
    int starts = 0;
    for (std::string line; std::getline(lines, line);)
      if (line.find("rank_zero_seed") == std::string::npos || ++starts == 1) text += line + "\n";
    EXPECT_EQ(text, read_text(folder.path("whole/" + std::string(file)))) << file;
    EXPECT_EQ(starts, 2) << file;
  }
}

TEST(LoggersTest, ARunThatWasOverLogsNothingTwice) {
  const Scratch folder;
  const std::string recipe = logging_recipe("[[loggers]]\nkind = 'csv'\n[[loggers]]\nkind = 'file'\n");
  log_run(recipe, folder.path("run"));
  const std::string csv = read_text(folder.path("run/metrics-rank0.csv"));
  const std::string text = read_text(folder.path("run/logs-rank0.txt"));
  EXPECT_THAT(csv, HasSubstr("metrics/eval/"));
  for (int again = 0; again < 2; ++again) log_run(recipe, folder.path("run"), {}, "auto");
  EXPECT_EQ(read_text(folder.path("run/metrics-rank0.csv")), csv);
  EXPECT_EQ(read_text(folder.path("run/logs-rank0.txt")),
            text + "[hyperparameter][step=13][batch=12]: rank_zero_seed: 1\n");
}

// Logs in the midst of attempts.
class Chatter final : public Callback {
 public:
  std::string name() const override { return "Chatter"; }
  void batch_start(State& state, Logger& logger) override {
    logger.log_metrics({{"chatter", static_cast<double>(state.timestamp.batch)}});
  }
};

TEST(LoggersTest, LinesOfAnAbortedAttemptReachNoLogger) {
  const auto memory = std::make_shared<InMemoryLogger>();
  MemoryWorld world{.recipe = logging_recipe("")};
  world.failures[1] = {40};
  world.listeners = [&](int rank) {
    Engine::Options options{.callbacks = {std::make_shared<Chatter>()}};
    if (rank == 0) options.destinations = {memory};
    return options;
  };
  const auto outcome = world.run("\"auto\"");
  EXPECT_EQ(outcome.error, "");
  EXPECT_TRUE(outcome.has_warning("ran out of memory"));
  EXPECT_THAT(values(*memory, "chatter"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(values(*memory, "loss/train/total"), SizeIs(12));
}

struct Warnings final : Log {
  void write(LogLevel, const std::string& line) override { lines.push_back(line); }
  void flush() override {}
  std::vector<std::string> lines;
};

class Broken final : public LoggerDestination {
 public:
  std::string name() const override { return "Broken"; }
  void log_metrics(const LoggedMetrics&, const LogTime&) override {
    ++calls;
    throw std::runtime_error("no such server");
  }
  int calls = 0;
};

TEST(LoggersTest, AFailingLoggerIsReportedAndNotCalledAgain) {
  const auto broken = std::make_shared<Broken>();
  const auto memory = std::make_shared<InMemoryLogger>();
  MemoryWorld world{.recipe = logging_recipe("")};
  world.listeners = [&](int) { return Engine::Options{.destinations = {broken, memory}}; };
  const auto outcome = world.run("1");
  EXPECT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.losses, SizeIs(12));
  EXPECT_TRUE(outcome.has_warning("logger Broken failed, and gets no more records: no such server"));
  EXPECT_EQ(broken->calls, 1);
  const auto all = memory->entries();
  const auto failed = std::ranges::find_if(
      all, [](const auto& entry) { return std::holds_alternative<LoggedMetrics>(entry.what); });
  const std::string lost = std::to_string(all.end() - failed);
  EXPECT_TRUE(outcome.has_warning("logger Broken lost " + lost + " records, since it failed")) << lost;
  EXPECT_FALSE(outcome.has_warning("InMemoryLogger"));
}

// Throws from one of its calls, and not even an std::exception.
class ThrowsIn final : public LoggerDestination {
 public:
  explicit ThrowsIn(std::string call) : call_(std::move(call)) {}
  std::string name() const override { return "Odd"; }
  void open(const LogStart&) override { come_to("open"); }
  void step_end(const LogTime&) override { come_to("step_end"); }
  void flush(bool) override { come_to("flush"); }
  bool busy() const override { return come_to("busy"); }
  bool finish(bool) override { return !come_to("finish"); }
  Nanoseconds finishes_within() const override { return std::chrono::seconds(come_to("finishes_within")); }
  void out_of_memory(State&, Logger&, const std::string&) override { come_to("out_of_memory"); }
  void batch_end(State&, Logger&) override { come_to("batch_end"); }

 private:
  bool come_to(const std::string& call) const {
    if (call == call_) throw 42;
    return false;
  }
  std::string call_;
};

TEST(LoggersTest, AnExceptionOfALoggerEndsNoTraining) {
  for (const char* call :
       {"open", "step_end", "flush", "busy", "finish", "finishes_within", "out_of_memory", "batch_end"}) {
    MemoryWorld world{.recipe = logging_recipe("")};
    world.failures[1] = {40};
    world.listeners = with(std::make_shared<ThrowsIn>(call));
    const auto outcome = world.run("\"auto\"");
    EXPECT_EQ(outcome.error, "") << call;
    EXPECT_THAT(outcome.losses, SizeIs(12)) << call;
    EXPECT_TRUE(outcome.has_warning("ran out of memory")) << call;
    const bool is_told = std::string(call) != "finishes_within";
    EXPECT_EQ(outcome.has_warning("an unknown exception"), is_told) << call;
  }
}

// Says that it has hours for its end.
class Leisurely final : public LoggerDestination {
 public:
  explicit Leisurely(bool& late) : late_(late) {}
  std::string name() const override { return "Leisurely"; }
  Nanoseconds finishes_within() const override { return std::chrono::hours(3); }
  bool finish(bool late) override { return late_ = late; }

 private:
  bool& late_;
};

TEST(LoggersTest, TheEndOfARunWaitsForNoneAsLongAsItLikes) {
  TokenScheduler scheduler;
  Warnings log;
  bool late = false;
  const ActorId writer = scheduler.reserve("logger_0", 0), stopper = scheduler.reserve("stopper", 0);
  scheduler.install(writer,
                    std::make_unique<LogWriter>("logger Leisurely", std::make_shared<Leisurely>(late), log));
  play(scheduler, stopper, {.start = [&](Context& context) {
         context.send(writer, FinishLog{});
         context.stop();
       }});
  scheduler.run();
  EXPECT_TRUE(late) << "finish was not called with late";
  EXPECT_LE(scheduler.now() - TimePoint{}, LogWriter::kMostToFinish + std::chrono::milliseconds(100));
}

// Takes no record before it is let go.
class Stuck final : public LoggerDestination {
 public:
  std::string name() const override { return "Stuck"; }
  void log_metrics(const LoggedMetrics& metrics, const LogTime&) override {
    std::unique_lock lock(mutex_);
    change_.wait(lock, [this] { return free_; });
    seen.push_back(metrics.front().second);
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    free_ = true;
    change_.notify_all();
  }
  std::vector<double> seen;

 private:
  std::mutex mutex_;
  std::condition_variable change_;
  bool free_ = false;
};

// Logs more than a queue holds to one that is stuck and to one that is not, and lets go at the end.
class Talker final : public Actor {
 public:
  static constexpr int kMany = 10'000;

  Talker(const RankActors& actors, Stuck& stuck, const InMemoryLogger& fast, Warnings& log)
      : queues_{{actors.logs[0], log}, {actors.logs[1], log}},
        writers_(actors.logs),
        stuck_(stuck),
        fast_(fast),
        log_(log) {}

  void start(Context& context) override {
    for (LogQueue& one : queues_) one.start(context, {});
    say(context, 0);
  }
  void receive(Context&, Envelope&) override {}
  std::optional<TimePoint> idle(Context& context) override {
    if (said_ < kMany) {
      if (fast_.entries().size() + 64 > static_cast<std::size_t>(said_)) say(context, said_);
      return context.now();
    }
    say(context, kMany);
    for (LogQueue& one : queues_) one.end(context);
    log_.write(LogLevel::kInfo, "lets go");
    stuck_.let_go();
    for (const auto& one : writers_) context.send(one.writer, FinishLog{});
    context.stop();
    return std::nullopt;
  }

 private:
  void say(Context& context, int number) {
    const std::vector<LogEntry> entries = {{{}, LoggedMetrics{{"number", number}}}};
    for (LogQueue& one : queues_) one.send(context, std::make_shared<const std::vector<LogEntry>>(entries));
    said_ = number + 1;
  }

  std::vector<LogQueue> queues_;
  std::vector<LogActor> writers_;
  Stuck& stuck_;
  const InMemoryLogger& fast_;
  Warnings& log_;
  int said_ = 0;
};

TEST(LoggersTest, AStuckLoggerLosesRecordsAndDelaysNoOther) {
  const auto stuck = std::make_shared<Stuck>();
  const auto fast = std::make_shared<InMemoryLogger>();
  Warnings log;
  ThreadScheduler scheduler;
  const ActorId talker = scheduler.reserve("talker", 0);
  const std::vector<ActorId> writers = {
      scheduler.reserve("logger_0", 0, {.requests = LogQueue::kMailboxCapacity}),
      scheduler.reserve("logger_1", 0, {.requests = LogQueue::kMailboxCapacity})};
  RankActors actors;
  actors.logs = {{writers[0], "logger Stuck"}, {writers[1], "logger InMemoryLogger"}};
  scheduler.install(talker, std::make_unique<Talker>(actors, *stuck, *fast, log));
  scheduler.install(writers[0], std::make_unique<LogWriter>("logger Stuck", stuck, log));
  scheduler.install(writers[1], std::make_unique<LogWriter>("logger InMemoryLogger", fast, log));
  scheduler.run();
  EXPECT_THAT(fast->entries(), SizeIs(Talker::kMany + 1));
  std::vector<double> first;
  for (int i = 0; i < LogQueue::kMostMessages; ++i) first.push_back(i);
  EXPECT_EQ(stuck->seen, first) << "what came first is kept";
  const int lost = Talker::kMany + 1 - LogQueue::kMostMessages;
  EXPECT_THAT(log.lines,
              ElementsAre("logger Stuck does not keep up; records are lost",
                          HasSubstr("logger Stuck lost " + std::to_string(lost) + " records"), "lets go"))
      << "it may hang for ever";
}

}  // namespace
}  // namespace tutti
