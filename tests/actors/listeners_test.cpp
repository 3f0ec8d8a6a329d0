#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <sstream>

#include "commands/inspect.h"
#include "commands/local_train.h"
#include "tests/actors/sleeping_world.h"
#include "training/state.h"

namespace tutti {
namespace {

// 4 batches an epoch.
std::string recipe(const std::string& max_duration, const std::string& t_max) {
  return "seed = 5\n[model]\nkind = 'mlp'\nhidden = [8]\n[data.train]\nkind = 'synthetic'\nsamples = 96\n"
         "batch_size = 24\nshape = [6]\n[optimizer]\nkind = 'sgd'\n[scheduler]\nkind = 'linear'\nt_max = '" +
         t_max + "'\n[train]\nmax_duration = '" + max_duration + "'\n";
}

void train_with(const std::string& max_duration, const std::string& run_dir, const Listeners& listeners,
                const std::string& resume = "", const std::string& t_max = "1dur") {
  LocalRunOptions options;
  options.ranks = 2;
  options.run_dir = run_dir;
  options.resume = resume;
  options.quiet = true;
  options.prepare = [&](Job& job) { job.listeners = listeners; };
  train_in_one_process(recipe_of(recipe(max_duration, t_max)), options);
}

std::vector<std::string> lines_with(const std::string& run_dir, const std::string& key) {
  std::vector<std::string> found;
  std::istringstream lines(read_text(run_dir + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);)
    if (const auto at = line.find("\"" + key + "\": "); at != std::string::npos)
      found.push_back(line.substr(at, line.find_first_of(",}", at) - at));
  return found;
}

Listeners algorithms(const std::function<std::shared_ptr<Algorithm>()>& make) {
  return [make](int) {
    Engine::Options options;
    options.algorithms = {make()};
    return options;
  };
}

class ShortenTraining final : public Algorithm {
 public:
  std::string name() const override { return "ShortenTraining"; }
  bool match(Event event, const State&) const override { return event == Event::kFitStart; }
  void apply(Event, State& state, Logger&) override { state.max_duration = state.max_duration * 0.5; }
};

TEST(ListenersTest, ShorterTrainingTakesItsScheduleAlong) {
  const Scratch folder;
  train_with("4ep", folder.path("halved"), algorithms([] { return std::make_shared<ShortenTraining>(); }));
  train_with("2ep", folder.path("short"), {});
  const auto rates = lines_with(folder.path("halved"), "lr");
  EXPECT_EQ(rates.size(), 8u);
  EXPECT_EQ(rates, lines_with(folder.path("short"), "lr"));
  EXPECT_EQ(inspect_digest(folder.path("halved")), inspect_digest(folder.path("short")));
}

// Doubles what the model reads.
class Doubling final : public Algorithm {
 public:
  explicit Doubling(Event when) : when_(when) {}
  std::string name() const override { return "Doubling"; }
  bool match(Event event, const State&) const override { return event == when_; }
  void apply(Event, State& state, Logger&) override {
    const at::Tensor input = state.batch["input"];
    state.batch.set("input", 2 * input);
  }

 private:
  Event when_;
};

TEST(ListenersTest, MayChangeABatchOrItsMicrobatches) {
  const Scratch folder;
  const auto losses = [&](const std::string& run, const Listeners& listeners) {
    train_with("4ba", folder.path(run), listeners);
    return lines_with(folder.path(run), "loss");
  };
  const auto doubling = [](Event when) {
    return algorithms([when] { return std::make_shared<Doubling>(when); });
  };
  const auto batches = losses("batches", doubling(Event::kAfterDataloader));
  EXPECT_EQ(batches.size(), 4u);
  EXPECT_EQ(losses("microbatches", doubling(Event::kBeforeForward)), batches);
  EXPECT_NE(losses("alone", {}), batches);
}

class HalvingTheLoss final : public Algorithm {
 public:
  std::string name() const override { return "HalvingTheLoss"; }
  bool match(Event event, const State&) const override { return event == Event::kBeforeBackward; }
  void apply(Event, State& state, Logger&) override { state.loss = 0.5 * state.loss; }
};

TEST(ListenersTest, TheLossIsReadAfterBeforeBackward) {
  const Scratch folder;
  const auto first_loss = [&](const std::string& run, const Listeners& listeners) {
    train_with("1ba", folder.path(run), listeners);
    const std::string line = lines_with(folder.path(run), "loss").at(0);
    return std::stod(line.substr(line.find(": ") + 2));
  };
  const double whole = first_loss("whole", {});
  EXPECT_NEAR(first_loss("halved", algorithms([] { return std::make_shared<HalvingTheLoss>(); })), whole / 2,
              1e-6);
}

// Sets the rate of the step after batch 3, and stops the first run before that step.
class SettingTheNextRate final : public Algorithm {
 public:
  std::string name() const override { return "SettingTheNextRate"; }
  bool match(Event event, const State& state) const override {
    return event == Event::kBatchEnd && state.timestamp.batch == 3;
  }
  void apply(Event, State& state, Logger&) override { state.next_lr = 2 * state.services->scheduled_lr(); }
};

TEST(ListenersTest, ARateSetAfterAStepHoldsForTheNextStepAlsoOfAResumedRun) {
  const Scratch folder;
  const auto setting = algorithms([] { return std::make_shared<SettingTheNextRate>(); });
  train_with("8ba", folder.path("plain"), {}, "", "8ba");
  train_with("8ba", folder.path("whole"), setting, "", "8ba");
  train_with("3ba", folder.path("resumed"), setting, "", "8ba");
  train_with("8ba", folder.path("resumed"), setting, "auto", "8ba");
  const auto rates = [&](const std::string& run) {
    std::vector<double> found;
    for (const std::string& line : lines_with(folder.path(run), "lr"))
      found.push_back(std::stod(line.substr(line.find(": ") + 2)));
    return found;
  };
  std::vector<double> expected = rates("plain");
  ASSERT_EQ(expected.size(), 8u);
  expected[3] *= 2;
  EXPECT_EQ(rates("whole"), expected);
  EXPECT_EQ(rates("resumed"), expected);
  EXPECT_EQ(inspect_digest(folder.path("resumed")), inspect_digest(folder.path("whole")));
}

// Steers by its own state: a number and a tensor.
class Steering final : public Algorithm {
 public:
  std::string name() const override { return "Steering"; }
  bool match(Event event, const State&) const override { return event == Event::kAfterTrainBatch; }
  void apply(Event, State& state, Logger& logger) override {
    ++steps_;
    sum_.add_(state.views[0].grad.abs().mean() / state.grad_scale);
    state.optimizer->set_lr(state.optimizer->lr() * (1 + 0.01 * steps_) / (1 + sum_.item<double>()));
    logger.log_metrics({{"steering/sum", sum_.item<double>()}, {"steering/steps", double(steps_)}});
  }
  std::string state() const override { return std::to_string(steps_); }
  void restore(const std::string& text) override { steps_ = std::stoi(text); }
  NamedTensors state_tensors() override { return {{"sum", sum_}}; }

 private:
  int steps_ = 0;
  at::Tensor sum_ = at::zeros({1}, at::kDouble);
};

TEST(ListenersTest, StateOfListenersIsInTheCheckpoint) {
  const auto steering = algorithms([] { return std::make_shared<Steering>(); });
  const Scratch folder;
  train_with("12ba", folder.path("whole"), steering, "", "12ba");
  for (const char* until : {"1ba", "3ba", "4ba", "6ba", "12ba"})
    train_with(until, folder.path("parts"), steering, "auto", "12ba");
  for (const char* key : {"loss", "steering/sum", "steering/steps"})
    EXPECT_EQ(lines_with(folder.path("parts"), key), lines_with(folder.path("whole"), key)) << key;
  EXPECT_EQ(inspect_digest(folder.path("parts")), inspect_digest(folder.path("whole")));
}

TEST(ListenersTest, MayComeAndGoBetweenAttempts) {
  const Scratch folder;
  train_with("4ba", folder.path("run"), {});
  train_with("6ba", folder.path("run"), algorithms([] { return std::make_shared<Steering>(); }), "auto");
  EXPECT_EQ(lines_with(folder.path("run"), "steering/steps"),
            (std::vector<std::string>{"\"steering/steps\": 1", "\"steering/steps\": 2"}));
  train_with("8ba", folder.path("run"), {}, "auto");
  EXPECT_EQ(lines_with(folder.path("run"), "loss").size(), 8u);
}

class Quitter final : public Callback {
 public:
  std::string name() const override { return "Quitter"; }
  void batch_end(State& state, Logger&) override {
    if (state.timestamp.batch == 6) state.stop_training();
  }
};

TEST(ListenersTest, AListenerStopsTheTrainingAtItsEvent) {
  const Scratch folder;
  train_with("4ep", folder.path("run"), [](int) {
    Engine::Options options;
    options.callbacks = {std::make_shared<Quitter>()};
    return options;
  });
  EXPECT_EQ(lines_with(folder.path("run"), "loss").size(), 6u);
}

}  // namespace
}  // namespace tutti
