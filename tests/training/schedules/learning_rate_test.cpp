#include "training/schedules/learning_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "commands/local_train.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// Five steps an epoch.
std::string text_of(
    const std::string& scheduler, const std::string& train,
    const std::string& eval = "[data.eval]\nkind = 'synthetic'\nsamples = 30\nshape = [12]\n") {
  return "seed = 5\n[model]\nkind = 'mlp'\nhidden = [16]\n[data.train]\nkind = 'synthetic'\nsamples = 100\n"
         "batch_size = 24\nshape = [12]\n" +
         eval + "[optimizer]\nkind = 'sgd'\nlr = 0.1\n[scheduler]\n" + scheduler + "[train]\n" + train;
}

// No evaluation after the first is good enough for it.
constexpr const char* kPlateau =
    "kind = 'reduce_lr_on_plateau'\nmode = 'max'\nthreshold = 1e6\nthreshold_mode = 'abs'\npatience = 1\n"
    "factor = 0.5\n";

void train(const std::string& text, const std::string& run_dir, const std::string& resume = "") {
  LocalRunOptions options;
  options.ranks = 2;
  options.run_dir = run_dir;
  options.quiet = true;
  options.resume = resume;
  train_in_one_process(recipe_of(text), options);
}

std::vector<double> rates(const std::string& run_dir, const std::string& logged = "lr") {
  const std::string key = "\"" + logged + "\": ";
  std::vector<double> found;
  std::istringstream lines(read_text(run_dir + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);)
    if (const auto at = line.find(key); at != std::string::npos)
      found.push_back(std::stod(line.substr(at + key.size())));
  return found;
}

TEST(LearningRate, FallsWhenEvaluationsStopImproving) {
  const Scratch folder;
  train(text_of(kPlateau, "max_duration = '20ba'\neval_interval = '3ba'\n"), folder.path("run"));
  std::vector<double> want(20, 0.1);  // evaluations after 3 (the best), 6, 9 (falls), 12, 15 (falls), 18
  std::fill(want.begin() + 9, want.end(), 0.05);
  std::fill(want.begin() + 15, want.end(), 0.025);
  EXPECT_EQ(rates(folder.path("run")), want);
}

// As a schedule of a plugin may be.
TEST(LearningRate, AScheduleThatGivesNoNumberIsAUserError) {
  const LearningRate rate(recipe_of(text_of("kind = 'constant'\n", "max_duration = '1ba'\n")),
                          {.max_duration = Time(1, TimeUnit::kBatch)}, {});
  EXPECT_THAT([&] { rate.at(Timestamp(), [](const Timestamp&) { return std::nan(""); }); },
              ThrowsMessage<UserError>(HasSubstr("the schedule gives nan")));
}

TEST(LearningRate, ComposersSchedulesAreSteppedByEpochsWhereTheRecipeSaysSo) {
  const Scratch folder;
  const std::string linear = "kind = 'linear'\nstep = 'epoch'\n", three_epochs = "max_duration = '3ep'\n";
  train(text_of(linear, three_epochs), folder.path("run"));
  std::vector<double> want(15, 0.1);
  std::fill(want.begin() + 5, want.end(), 0.1 * 2 / 3);
  std::fill(want.begin() + 10, want.end(), 0.1 / 3);
  EXPECT_THAT(rates(folder.path("run")), testing::Pointwise(testing::DoubleNear(1e-9), want));
  const std::string watched = "[compat]\ncomposer = true\n[[callbacks]]\nkind = 'lr_monitor'\n";
  train(text_of(linear, three_epochs) + watched, folder.path("composer"));
  for (const char* logged : {"lr", "lr-SGD/group0"})
    EXPECT_THAT(rates(folder.path("composer"), logged), testing::Pointwise(testing::DoubleNear(1e-9), want))
        << logged << ": it changes when the epoch's last batch is over";
}

// 2 of 3 epochs' seconds are gone when the third begins, and their rate is its first batch's throughout.
TEST(LearningRate, AScheduleByEpochsHoldsThroughEachEpoch) {
  const std::string text = text_of("kind = 'linear'\nstep = 'epoch'\n", "max_duration = '12sec'\n");
  const Setting recipe = recipe_of(text);
  const LearningRate rate(recipe,
                          {.max_duration = Time::parse("12sec"), .batches_per_epoch = 5, .base_lr = 0.1}, {});
  Timestamp now{.epoch = 2, .batch = 10, .total_wct = 6};
  const double first = rate.at(now, rate.schedule());
  EXPECT_DOUBLE_EQ(first, 0.05);
  now.batch = 12, now.batch_in_epoch = 2, now.total_wct = 9, now.epoch_wct = 3;
  EXPECT_DOUBLE_EQ(rate.at(now, rate.schedule()), first);
}

TEST(LearningRate, AResumedRunHasTheRatesOfAnUninterruptedOne) {
  const Scratch folder;
  const auto text = [](const char* max_duration) {
    return text_of(kPlateau, "eval_interval = '3ba'\nmax_duration = '" + std::string(max_duration) + "'\n");
  };
  train(text("20ba"), folder.path("whole"));
  for (const char* end : {"7ba", "10ba", "20ba"})
    train(text(end), folder.path("parts"), std::string(end) == "7ba" ? "" : "auto");
  EXPECT_EQ(rates(folder.path("parts")), rates(folder.path("whole")));
}

TEST(LearningRate, IsThatOfPyTorchsScheduleEpochByEpoch) {
  const Scratch folder;
  train(text_of("kind = 'sequential_lr'\nmilestones = [2]\n[[scheduler.schedulers]]\nkind = 'constant_lr'\n"
                "factor = 0.5\n[[scheduler.schedulers]]\nkind = 'cosine_annealing_lr'\nT_max = 2\neta_min = "
                "0.02\n",
                "max_duration = '4ep'\n"),
        folder.path("run"));
  const auto found = rates(folder.path("run"));
  ASSERT_EQ(found.size(), 20u);
  const double want[] = {0.05, 0.05, 0.1, 0.06};
  for (std::size_t step = 0; step < found.size(); ++step)
    EXPECT_NEAR(found[step], want[step / 5], 1e-12) << step;
}

TEST(LearningRate, AMetricThatIsNeverMeasuredIsAUserError) {
  const Scratch folder;
  const auto refused = [&](const std::string& text, const char* message) {
    EXPECT_THAT([&] { train(text, folder.path("run")); }, ThrowsMessage<UserError>(HasSubstr(message)));
  };
  const std::string train = "max_duration = '1ep'\n";
  refused(text_of(kPlateau, train, ""), "scheduler.monitor = \"metrics/eval/CrossEntropy\": never");
  refused(text_of(kPlateau, train + "eval_interval = '0ba'\n"), "never measured");
  refused(text_of(kPlateau + std::string("monitor = 'Entropy'\n"), train),
          "scheduler.monitor = \"Entropy\": not measured by any evaluator; expected one of "
          "metrics/eval/MulticlassAccuracy, metrics/eval/CrossEntropy");
}

TEST(LearningRate, LagsABatchInComposersWay) {
  const Scratch folder;
  const auto text = [](const std::string& max_duration) {
    return "[compat]\ncomposer = true\n" +
           text_of("kind = 'linear'\nt_max = '10ba'\n", "max_duration = '" + max_duration + "'\n");
  };
  const auto with_seed = [&](const std::string& duration) {
    std::string all = text(duration);
    const auto seed = all.find("seed = 5\n");
    return all.substr(seed, 9) + all.substr(0, seed) + all.substr(seed + 9);
  };
  train(with_seed("6ba"), folder.path("whole"));
  const auto whole = rates(folder.path("whole"));
  EXPECT_EQ(whole.at(0), 0.1);
  EXPECT_EQ(whole.at(1), 0.1);
  EXPECT_DOUBLE_EQ(whole.at(5), 0.1 * (1 - 0.4));
  train(with_seed("3ba"), folder.path("parts"));
  train(with_seed("6ba"), folder.path("parts"), "auto");
  EXPECT_EQ(rates(folder.path("parts")), whole);
}

// torch's are stepped after the batch or the epoch, as they are meant.
TEST(LearningRate, OfPyTorchsSchedulesLagsNowhere) {
  const Scratch folder;
  const std::string text = text_of("kind = 'step_lr'\nstep_size = 1\ngamma = 0.5\n",
                                   "max_duration = '3ep'\neval_interval = '0ep'\n");
  train(text, folder.path("tutti"));
  train(text + "[compat]\ncomposer = true\n", folder.path("composer"));
  EXPECT_EQ(rates(folder.path("composer")), rates(folder.path("tutti")));
}

struct OwnSchedule final : Algorithm {
  std::string name() const override { return "OwnSchedule"; }
  bool match(Event event, const State& state) const override {
    return event == Event::kBatchEnd && state.timestamp.batch == 2;
  }
  void apply(Event, State& state, Logger&) override {
    state.schedule = [](const Timestamp& now) { return now.batch == 3 ? 0.25 : 2.0; };
  }
};

TEST(LearningRate, AnAlgorithmMayPutAnotherScheduleInItsPlace) {
  const Scratch folder;
  LocalRunOptions options;
  options.run_dir = folder.path("run");
  options.quiet = true;
  options.prepare = [](Job& job) {
    job.listeners = [](int) {
      Engine::Options listeners;
      listeners.algorithms = {std::make_shared<OwnSchedule>()};
      return listeners;
    };
  };
  train_in_one_process(recipe_of(text_of("alpha = 0.5\n", "max_duration = '1ep'\neval_interval = '0ep'\n")),
                       options);
  EXPECT_EQ(rates(folder.path("run")), (std::vector<double>{0.05, 0.05, 0.2, 0.025, 0.2}));
}

TEST(LearningRate, ARatioThatLeavesNothingIsAUserError) {
  const Scratch folder;
  EXPECT_THAT(
      [&] { train(text_of("", "max_duration = '1ep'\nscale_schedule_ratio = 0.5\n"), folder.path("run")); },
      ThrowsMessage<UserError>(HasSubstr("this leaves nothing of max_duration, 1ep")));
}

TEST(LearningRate, ScaleScheduleRatioShortensTrainingAndSchedule) {
  const Scratch folder;
  const std::string linear = "kind = 'linear'\n";
  train(text_of(linear, "max_duration = '20ba'\nscale_schedule_ratio = 0.5\n"), folder.path("scaled"));
  train(text_of(linear, "max_duration = '10ba'\n"), folder.path("short"));
  EXPECT_EQ(rates(folder.path("scaled")), rates(folder.path("short")));
}

}  // namespace
}  // namespace tutti
