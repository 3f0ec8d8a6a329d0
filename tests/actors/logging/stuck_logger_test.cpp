#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "commands/trainer.h"
#include "tests/runtime/scratch.h"
#include "training/loggers/logger_destination.h"

namespace tutti {
namespace {

constexpr int kTrainedSteps = 300;
constexpr int kTextBytes = 200'000;  // a step: more than wait in a queue, in all

// Never returns from one of its calls.
class StuckIn final : public LoggerDestination {
 public:
  explicit StuckIn(std::string call) : call_(std::move(call)) {}
  std::string name() const override { return "Stuck"; }
  void batch_end(State&, Logger& logger) override { logger.log_text({"text", std::string(kTextBytes, 'x')}); }
  void open(const LogStart&) override { come_to("open"); }
  void log_metrics(const LoggedMetrics&, const LogTime&) override { come_to("log_metrics"); }
  bool finish(bool) override {
    come_to("finish");
    return true;
  }
  Nanoseconds finishes_within() const override { return Nanoseconds(0); }

 private:
  void come_to(const std::string& call) const {
    while (call == call_) pause();
  }
  std::string call_;
};

Trainer::Options options_with(const std::shared_ptr<LoggerDestination>& destination,
                              const std::string& run_dir) {
  Trainer::Options options;
  options.recipe =
      "seed = 1\n[model]\nkind = 'mlp'\nhidden = [4]\n[data.train]\nkind = 'synthetic'\nsamples = 24\n"
      "batch_size = 8\nshape = [3]\n[optimizer]\nkind = 'sgd'\n[train]\nmax_duration = '" +
      std::to_string(kTrainedSteps) + "ba'\nprogress_bar = false\n[checkpoint]\ninterval = '100ba'\n";
  options.run_dir = run_dir;
  options.listeners = [destination](int) { return Engine::Options{.destinations = {destination}}; };
  return options;
}

TEST(StuckLoggerTest, ATrainingEndsWithoutOneThatNeverReturns) {
  for (const char* call : {"open", "log_metrics", "finish"}) {
    const Scratch folder;
    const std::string run_dir = folder.path("run");
    EXPECT_EQ(Trainer(options_with(std::make_shared<StuckIn>(call), run_dir)).fit(), 0) << call;
    const std::string metrics = read_text(run_dir + "/metrics.jsonl");
    EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), kTrainedSteps) << call;
    const std::string log = read_text(run_dir + "/log/rank-0.log");
    EXPECT_THAT(log, testing::HasSubstr("logger Stuck hangs or is slow: the run ends without it")) << call;
    if (std::string(call) == "finish") continue;
    EXPECT_THAT(log, testing::HasSubstr("logger Stuck does not keep up; records are lost")) << call;
    EXPECT_THAT(log, testing::ContainsRegex("logger Stuck lost [1-9][0-9]* records")) << call;
  }
}

TEST(StuckLoggerTest, AReturningLoggerIsNotReported) {
  const Scratch folder;
  const std::string run_dir = folder.path("run");
  EXPECT_EQ(Trainer(options_with(std::make_shared<StuckIn>("none"), run_dir)).fit(), 0);
  EXPECT_THAT(read_text(run_dir + "/log/rank-0.log"), testing::Not(testing::HasSubstr("hangs")));
}

}  // namespace
}  // namespace tutti
