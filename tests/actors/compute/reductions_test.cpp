#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "algorithms/loop/sam.h"
#include "tests/actors/memory_world.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr double kBatch = 12;

// Two steps an epoch.
std::string mlp_recipe(int steps) {
  return "seed = 5\n[model]\nkind = 'mlp'\nhidden = [4]\n[data.train]\nkind = 'synthetic'\nsamples = 24\n"
         "batch_size = 12\nshape = [3]\n[optimizer]\nkind = 'sgd'\n[checkpoint]\ninterval = '0ba'\n[train]\n"
         "max_duration = '" +
         std::to_string(steps) + "ba'\n";
}

struct Heard {
  int asked = 0;
  int contributed = 0;
  std::vector<std::vector<double>> sums;
  std::vector<std::string> order;
};

// Sums a number of its batch, a number that differs on every rank, and a number that it does not set.
class Summing final : public Callback {
 public:
  explicit Summing(Heard& heard) : heard_(heard) {}
  std::string name() const override { return "Summing"; }
  int64_t reductions(const State&) const override { return ++heard_.asked == 1 ? 3 : 7; }

  void before_train_batch(State&, Logger&) override { samples_ = 0; }
  void after_forward(State& state, Logger&) override {
    samples_ += static_cast<double>(state.batch.samples());
  }
  void contribute(const State& state, std::span<double> mine) override {
    ++heard_.contributed;
    heard_.order.push_back("contributed");
    mine[0] = samples_;
    mine[1] = state.topology.rank + 1;
  }
  void reduced(State&, std::span<const double> sums) override {
    heard_.order.push_back("reduced");
    heard_.sums.emplace_back(sums.begin(), sums.end());
  }
  void after_train_batch(State&, Logger&) override { heard_.order.push_back("after train batch"); }

 private:
  Heard& heard_;
  double samples_ = 0;
};

Listeners summing(std::vector<Heard>& heard, std::shared_ptr<Algorithm> beside = nullptr) {
  return [&heard, beside](int rank) {
    Engine::Options options;
    if (beside) options.algorithms = {beside};
    options.callbacks = {std::make_shared<Summing>(heard[rank])};
    return options;
  };
}

std::vector<double> expected_of(int ranks) { return {kBatch, ranks * (ranks + 1) / 2.0, 0}; }

TEST(ReductionsTest, EveryRankGetsTheSumsOfAllInEveryStep) {
  for (const int ranks : {1, 2}) {
    for (const char* parts : {"1", "3"}) {
      std::vector<Heard> heard(ranks);
      const MemoryWorld world{.recipe = mlp_recipe(2), .ranks = ranks, .listeners = summing(heard)};
      EXPECT_EQ(world.run(parts).error, "");
      for (const Heard& one : heard)
        EXPECT_THAT(one.sums, ElementsAre(expected_of(ranks), expected_of(ranks))) << ranks << " x " << parts;
    }
  }
}

TEST(ReductionsTest, ComeBeforeAfterTrainBatch) {
  std::vector<Heard> heard(2);
  const MemoryWorld world{.recipe = mlp_recipe(1), .listeners = summing(heard)};
  EXPECT_EQ(world.run("2").error, "");
  for (const Heard& one : heard)
    EXPECT_THAT(one.order, ElementsAre("contributed", "reduced", "after train batch"));
}

TEST(ReductionsTest, HowManyThereAreIsAskedOnce) {
  std::vector<Heard> heard(2);
  const MemoryWorld world{.recipe = mlp_recipe(4), .listeners = summing(heard)};
  EXPECT_EQ(world.run("[[0, 1], [2, 3]]").error, "");
  for (const Heard& one : heard) {
    EXPECT_EQ(one.asked, 1);
    EXPECT_THAT(one.sums, Each(SizeIs(3)));
  }
}

// Sums `first`, `first` + 1 and so on.
template <class Kind>
class NumberKind : public Kind {
 public:
  NumberKind(int count, double first, Heard& heard) : count_(count), first_(first), heard_(heard) {}
  std::string name() const override { return "NumberKind"; }
  int64_t reductions(const State&) const override { return count_; }
  void contribute(const State&, std::span<double> mine) override {
    ++heard_.contributed;
    for (double next = first_; double& number : mine) number = next++;
  }
  void reduced(State&, std::span<const double> sums) override {
    heard_.sums.emplace_back(sums.begin(), sums.end());
  }

 private:
  int count_;
  double first_;
  Heard& heard_;
};

class NumbersOfAlgorithm final : public NumberKind<Algorithm> {
 public:
  using NumberKind::NumberKind;
  bool match(Event, const State&) const override { return false; }
  void apply(Event, State&, Logger&) override {}
};

TEST(ReductionsTest, EachListenerGetsItsOwn) {
  struct Three {
    Heard algorithm, none, callback;
  };
  std::vector<Three> heard(2);
  MemoryWorld world{.recipe = mlp_recipe(1)};
  world.listeners = [&](int rank) {
    Engine::Options options;
    options.algorithms = {std::make_shared<NumbersOfAlgorithm>(2, 10, heard[rank].algorithm)};
    options.callbacks = {std::make_shared<NumberKind<Callback>>(0, 20, heard[rank].none),
                         std::make_shared<NumberKind<Callback>>(3, 30, heard[rank].callback)};
    return options;
  };
  EXPECT_EQ(world.run("1").error, "");
  for (const Three& one : heard) {
    EXPECT_THAT(one.algorithm.sums, ElementsAre(ElementsAre(20, 22)));
    EXPECT_THAT(one.none.sums, IsEmpty());
    EXPECT_EQ(one.none.contributed, 0);
    EXPECT_THAT(one.callback.sums, ElementsAre(ElementsAre(60, 62, 64)));
  }
}

TEST(ReductionsTest, RanksThatDeclareOtherNumbersAreReported) {
  std::vector<Heard> heard(2);
  MemoryWorld world{.recipe = mlp_recipe(1)};
  world.listeners = [&](int rank) {
    return Engine::Options{.callbacks = {std::make_shared<NumberKind<Callback>>(1 + rank, 0, heard[rank])}};
  };
  EXPECT_THAT(world.run("1").error, HasSubstr("ranks posted different collectives"));
}

std::vector<std::string> accuracies(const MemoryWorld::Outcome& outcome) {
  const std::string key = "\"metrics/train/MulticlassAccuracy\": ";
  std::vector<std::string> found;
  std::istringstream lines(outcome.metrics);
  for (std::string line; std::getline(lines, line);)
    if (const auto at = line.find(key); at != std::string::npos)
      found.push_back(line.substr(at, line.find_first_of(",}", at) - at));
  return found;
}

TEST(ReductionsTest, TrainMetricsAreWhatTheyAreWithout) {
  MemoryWorld world{.recipe = mlp_recipe(3)};
  const auto without = world.run("2");
  std::vector<Heard> heard(2);
  world.listeners = summing(heard);
  const auto with = world.run("2");
  EXPECT_THAT(accuracies(with), SizeIs(3));
  EXPECT_EQ(accuracies(with), accuracies(without));
  EXPECT_EQ(with.losses, without.losses);
  EXPECT_TRUE(with.weights == without.weights);
}

TEST(ReductionsTest, AnAbortedAttemptHasNone) {
  std::vector<Heard> heard(2);
  MemoryWorld world{.recipe = mlp_recipe(2), .failures = {{1, {5}}}, .listeners = summing(heard)};
  const auto outcome = world.run("\"auto\"");
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.schedule(), "[[0, 2]]");
  for (const Heard& one : heard) EXPECT_THAT(one.sums, ElementsAre(expected_of(2), expected_of(2)));
  EXPECT_EQ(heard[0].contributed, 3);
  EXPECT_EQ(heard[1].contributed, 2);
}

// Allocates memory in `contribute`.
class Spender final : public Callback {
 public:
  std::string name() const override { return "Spender"; }
  int64_t reductions(const State&) const override { return 1; }
  void contribute(const State&, std::span<double> mine) override {
    mine[0] = at::ones({64}).sum().item<double>();
  }
  void reduced(State&, std::span<const double> sums) override { EXPECT_EQ(sums[0], 128); }
};

TEST(ReductionsTest, MemoryThatRunsOutForThemAbortsTheAttempt) {
  MemoryWorld world{.recipe = mlp_recipe(1)};
  const int64_t without = world.run("\"auto\"").allocations[1];
  world.listeners = [](int) { return Engine::Options{.callbacks = {std::make_shared<Spender>()}}; };
  const int64_t last = world.run("\"auto\"").allocations[1];
  ASSERT_GT(last, without);
  const auto by_hand = world.run("2");
  world.failures[1] = {last};
  const auto automatic = world.run("\"auto\"");
  EXPECT_EQ(automatic.error, "");
  EXPECT_EQ(automatic.schedule(), "[[0, 2]]");
  EXPECT_FALSE(automatic.has_warning("still held"));
  EXPECT_TRUE(automatic.weights == by_hand.weights);
}

TEST(ReductionsTest, SumsOfAStepWithClosuresAreOfTheFirstPass) {
  std::vector<Heard> heard(2);
  const MemoryWorld world{.recipe = mlp_recipe(2),
                          .listeners = summing(heard, std::make_shared<SAM>(SAMOptions{.rho = 0.1}))};
  EXPECT_EQ(world.run("2").error, "");
  for (const Heard& one : heard) {
    EXPECT_EQ(one.contributed, 2);
    EXPECT_THAT(one.sums, ElementsAre(expected_of(2), expected_of(2)));
  }
}

TEST(ReductionsTest, SumsOfAStepAbortedInALaterPassComeAgain) {
  std::vector<Heard> heard(2);
  MemoryWorld world{.recipe = mlp_recipe(1)};
  world.listeners = summing(heard, std::make_shared<SAM>(SAMOptions{.rho = 0.1}));
  const int64_t last = world.run("\"auto\"").allocations[1];
  heard.assign(2, {});
  world.failures[1] = {last};
  const auto automatic = world.run("\"auto\"");
  EXPECT_EQ(automatic.error, "");
  EXPECT_EQ(automatic.schedule(), "[[0, 2]]");
  for (const Heard& one : heard) {
    EXPECT_EQ(one.contributed, 2);
    EXPECT_THAT(one.sums, ElementsAre(expected_of(2), expected_of(2)));
  }
}

class NoNumber final : public Algorithm {
 public:
  std::string name() const override { return "NoNumber"; }
  bool match(Event event, const State&) const override { return event == Event::kAfterLoss; }
  void apply(Event, State& state, Logger&) override { state.loss = state.loss * std::nan(""); }
};

TEST(ReductionsTest, AStepThatIsSkippedHasThemToo) {
  std::vector<Heard> heard(2);
  const MemoryWorld world{.recipe = mlp_recipe(1), .listeners = summing(heard, std::make_shared<NoNumber>())};
  EXPECT_THAT(world.run("1").warnings, Not(IsEmpty()));
  for (const Heard& one : heard) EXPECT_THAT(one.sums, ElementsAre(expected_of(2)));
}

}  // namespace
}  // namespace tutti
