#include <ATen/ATen.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "algorithms/loop/sam.h"
#include "commands/inspect.h"
#include "commands/local_train.h"
#include "io/json/json_line.h"
#include "models/layers/layer.h"
#include "runtime/random.h"
#include "tensors/memory/meter.h"
#include "tests/actors/compute/hungry_model.h"
#include "tests/actors/memory_world.h"
#include "tests/actors/sleeping_world.h"
#include "tests/runtime/nightly.h"
#include "training/state.h"

namespace tutti {
namespace {

// Running statistics, and convolutions in the layout that they like.
std::string resnet(int steps, int batch) {
  return recipe_of_steps("[model]\nkind = 'resnet_cifar'\nwidth = 4\n",
                         "samples = 96\nbatch_size = " + std::to_string(batch) + "\nshape = [3, 8, 8]\n",
                         steps);
}

// Random draws in the forward pass; of more tokens than bytes, so that no text is written at the end.
std::string gpt(int steps, int batch) {
  return recipe_of_steps(
      "[model]\nkind = 'gpt'\nvocab_size = 257\nn_layer = 1\nn_head = 2\nn_embd = 8\nn_positions = 8\n"
      "dropout = 0.3\n",
      "samples = 96\nbatch_size = " + std::to_string(batch) + "\nshape = [8]\ntargets = 'sequence'\n", steps);
}

class CountsMicrobatches final : public Callback {
 public:
  explicit CountsMicrobatches(std::shared_ptr<int64_t> count) : count_(std::move(count)) {}
  std::string name() const override { return "CountsMicrobatches"; }
  void run_event(Event event, State&, Logger&) override {
    if (event == Event::kBeforeForward) ++*count_;
  }

 private:
  std::shared_ptr<int64_t> count_;
};

// Runs with the schedule of an automatic run, given by hand; each schedule once. Rank 0 must train on as many
// microbatches as the schedule says.
class ByHand {
 public:
  explicit ByHand(MemoryWorld world) : world_(std::move(world)) {
    world_.failures.clear();
    world_.listeners = [others = world_.listeners, count = microbatches_](int rank) {
      auto listeners = others ? others(rank) : Engine::Options();
      if (rank == 0) listeners.callbacks.push_back(std::make_shared<CountsMicrobatches>(count));
      return listeners;
    };
  }

  const MemoryWorld::Outcome& run(const std::string& schedule) {
    const auto found = runs_.find(schedule);
    if (found != runs_.end()) return found->second;
    *microbatches_ = 0;
    const auto& outcome = runs_.emplace(schedule, world_.run(schedule)).first->second;
    if (schedule == "1") passes_ = *microbatches_ / static_cast<int64_t>(outcome.counts.size());
    if (schedule != "1" && outcome.error.empty()) expect_microbatches(outcome);
    return outcome;
  }

  void expect_equal(const MemoryWorld::Outcome& automatic) {
    ASSERT_EQ(automatic.error, "");
    const auto& by_hand = run(automatic.schedule());
    ASSERT_EQ(by_hand.error, "");
    EXPECT_EQ(automatic.losses, by_hand.losses);
    EXPECT_TRUE(automatic.weights == by_hand.weights) << "other weights";
    EXPECT_FALSE(automatic.has_warning("still held"));
    EXPECT_EQ(automatic.left_in_scopes, by_hand.left_in_scopes);
  }

 private:
  void expect_microbatches(const MemoryWorld::Outcome& outcome) {
    const int64_t trained = *microbatches_;
    run("1");
    EXPECT_EQ(trained, passes_ * std::accumulate(outcome.counts.begin(), outcome.counts.end(), int64_t{0}));
  }

  MemoryWorld world_;
  std::shared_ptr<int64_t> microbatches_ = std::make_shared<int64_t>(0);
  int64_t passes_ = 0;  // over a batch, in a step
  std::map<std::string, MemoryWorld::Outcome> runs_;
};

// An allocation fails, every `stride`th of the run in turn, on the ranks given.
void sweep(MemoryWorld world, const std::vector<int>& ranks, int64_t stride) {
  ByHand by_hand(world);
  const auto clean = world.run("\"auto\"");
  ASSERT_EQ(clean.schedule(), "[[0, 1]]");
  ASSERT_GT(clean.allocations[ranks[0]], 2 * stride);
  for (int64_t ordinal = 1; ordinal <= clean.allocations[ranks[0]]; ordinal += stride) {
    for (const int rank : ranks) world.failures[rank] = {ordinal};
    world.schedule_seed = static_cast<uint64_t>(ordinal);
    const auto automatic = world.run("\"auto\"");
    EXPECT_NE(automatic.schedule(), "[[0, 1]]");
    EXPECT_TRUE(automatic.has_warning("ran out of memory"));
    by_hand.expect_equal(automatic);
    ASSERT_FALSE(testing::Test::HasFailure()) << "allocation " << ordinal << ": " << automatic.error;
  }
}

// The stride of a long sweep, which is this one by night.
int64_t by_day(int64_t stride) { return is_nightly() ? stride : 2 * stride + 1; }

TEST(OutOfMemoryTest, AtAnyAllocationOnOneRank) {
  sweep({.recipe = mlp(2)}, {0}, 1);
  sweep({.recipe = mlp(2)}, {1}, 1);
}

TEST(OutOfMemoryTest, AtAnyAllocationOnAllRanks) { sweep({.recipe = mlp(2)}, {0, 1}, 1); }

TEST(OutOfMemoryTest, AtAnyAllocationAlone) { sweep({.recipe = mlp(2), .ranks = 1}, {0}, 1); }

TEST(OutOfMemoryTest, RunningStatisticsAreOfTheGoodAttempt) {
  sweep({.recipe = resnet(2, 8)}, {0}, by_day(97));
  sweep({.recipe = resnet(2, 8)}, {1}, by_day(101));
}

TEST(OutOfMemoryTest, RandomDrawsAreOfTheGoodAttempt) {
  sweep({.recipe = gpt(2, 8)}, {0}, by_day(7));
  sweep({.recipe = gpt(2, 8), .ranks = 1}, {0}, by_day(7));
}

TEST(OutOfMemoryTest, ActivationsAreComputedAgainInTheGoodAttempt) {
  const std::string block = "[sharding]\nactivation_checkpointing = ['GptBlock']\n";
  sweep({.recipe = gpt(2, 8) + block, .ranks = 1}, {0}, by_day(13));
  sweep({.recipe = gpt(2, 8) + block}, {1}, by_day(29));
  sweep({.recipe = resnet(2, 8) + "[sharding]\nactivation_checkpointing = true\n"}, {0}, by_day(307));
}

// The weights that a pass was at are forgotten, and the step begins anew.
TEST(OutOfMemoryTest, InAnyPassOfAClosure) {
  const auto twice = [](int) {
    Engine::Options options;
    options.algorithms = {std::make_shared<SAM>(SAMOptions{.rho = 0.1})};
    return options;
  };
  sweep({.recipe = mlp(2), .listeners = twice}, {0}, 1);
  sweep({.recipe = mlp(2), .listeners = twice}, {1}, 3);
  sweep({.recipe = mlp(2), .ranks = 1, .listeners = twice}, {0}, 1);
  sweep({.recipe = resnet(2, 8), .listeners = twice}, {1}, by_day(211));
  sweep({.recipe = gpt(2, 8), .listeners = twice}, {0, 1}, by_day(31));
}

// Needs memory of its own at every event, random draws among it, and changes what is learnt.
class Hungry final : public Algorithm {
 public:
  std::string name() const override { return "Hungry"; }
  bool match(Event, const State&) const override { return true; }
  void apply(Event event, State& state, Logger&) override {
    const at::Tensor noise = at::rand({64});
    if (event == Event::kAfterDataloader)
      state.batch.set("input", state.batch["input"] + noise.narrow(0, 0, 3));
    if (event == Event::kAfterLoss) state.loss = state.loss * noise[0];
  }
};

TEST(OutOfMemoryTest, InTheHandlersOfEvents) {
  const auto hungry = [](int) {
    Engine::Options options;
    options.algorithms = {std::make_shared<Hungry>()};
    return options;
  };
  const auto without = MemoryWorld{.recipe = mlp(2)}.run("1");
  const auto with = MemoryWorld{.recipe = mlp(2), .listeners = hungry}.run("1");
  ASSERT_GT(with.allocations[0], without.allocations[0] + 10);
  ASSERT_NE(with.losses, without.losses);
  sweep({.recipe = mlp(2), .listeners = hungry}, {0}, 1);
  sweep({.recipe = mlp(2), .listeners = hungry}, {0, 1}, 1);
}

// At other phases on other ranks, in the retry and in the middle microbatches of it.
TEST(OutOfMemoryTest, AnyScheduleOfFailuresEndsWell) {
  MemoryWorld world{.recipe = mlp(3), .ranks = 3};
  ByHand by_hand(world);
  const int64_t most = 2 * world.run("\"auto\"").allocations[0];
  int of_two_doublings = 0;
  for (int seed = 0; seed < 150; ++seed) {
    RandomKey draw(static_cast<uint64_t>(seed), "failures");
    world.failures.clear();
    for (int64_t i = 0; i < 2; ++i)  // 12 samples on 3 ranks: the second doubling leaves single ones
      world.failures[static_cast<int>(draw.fold_in(i).fold_in(0).bits() % 3)].push_back(
          1 + static_cast<int64_t>(draw.fold_in(i).fold_in(1).bits() % static_cast<uint64_t>(most)));
    for (auto& [rank, ordinals] : world.failures) std::sort(ordinals.begin(), ordinals.end());
    world.schedule_seed = static_cast<uint64_t>(seed);
    const auto automatic = world.run("\"auto\"");
    if (automatic.schedule().find(", 4]") != std::string::npos) ++of_two_doublings;
    by_hand.expect_equal(automatic);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ": " << automatic.error;
  }
  EXPECT_GT(of_two_doublings, 20);
}

class BudgetTest : public testing::TestWithParam<int> {};

// A real budget, for one rank of several only.
void train_under_budget(MemoryWorld world, double part) {
  ByHand by_hand(world);
  const double budget = part * by_hand.run("1").peak_mb;
  std::string each = "1000";
  for (int rank = 1; rank < world.ranks; ++rank) each += rank + 1 == world.ranks ? "" : ", 1000";
  each = world.ranks == 1 ? std::to_string(budget) : each + ", " + std::to_string(budget);
  world.recipe += "[device]\nmemory_budget_mb = [" + each + "]\n";
  const auto automatic = world.run("\"auto\"");
  ASSERT_EQ(automatic.error, "");
  EXPECT_GE(automatic.counts.back(), 2);
  EXPECT_TRUE(
      automatic.has_warning("step 1: rank " + std::to_string(world.ranks - 1) + " ran out of memory"));
  by_hand.expect_equal(automatic);
}

TEST_P(BudgetTest, ResnetGetsByWithLess) {
  train_under_budget({.recipe = resnet(4, 48), .ranks = GetParam()}, 0.7);
}

TEST_P(BudgetTest, GptGetsByWithLess) {
  train_under_budget({.recipe = gpt(4, 48), .ranks = GetParam()}, 0.7);
}

INSTANTIATE_TEST_SUITE_P(Ranks, BudgetTest, testing::Values(1, 2, 3));

TEST(OutOfMemoryTest, BatchThatGrowsInMidRunDoublesAgain) {
  const auto grows = [](int call) { return call < 3 ? kMb : call < 8 ? 2 * kMb : 3.5 * kMb; };
  const auto outcome = hungry_world({grows}, 6).run("\"auto\"");
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.schedule(), "[[0, 1], [3, 2], [5, 4]]");
}

TEST(OutOfMemoryTest, HookThatAllocatesMayFailToo) {
  const auto outcome = hungry_world({[](int) { return 2 * kMb; }, true}, 2).run("\"auto\"");
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.schedule(), "[[0, 2]]");
  EXPECT_FALSE(outcome.has_warning("still held"));
}

TEST(OutOfMemoryTest, GrowsBackWhenMemorySuffices) {
  const auto peaks = [](int call) { return call == 2 ? 4 * kMb : kMb; };
  MemoryWorld world = hungry_world({peaks}, 10);
  world.recipe.insert(world.recipe.find("max_duration"), "grad_accum_grow_interval = '3ba'\n");
  EXPECT_EQ(world.run("\"auto\"").schedule(), "[[0, 1], [2, 2], [5, 1]]");
}

TEST(OutOfMemoryTest, OneSampleThatIsTooLargeEndsTheRun) {
  const auto first = hungry_world({[](int) { return 9 * kMb; }}, 4).run("\"auto\"");
  EXPECT_EQ(first.error.find("step 1: rank 0 and 1 other ran out of memory (asked "), 0u) << first.error;
  const auto outcome = hungry_world({[](int call) { return call < 2 ? kMb : 9 * kMb; }}, 4).run("\"auto\"");
  EXPECT_EQ(outcome.error.find("step 3: rank 0 and 1 other ran out of memory (asked 9.0 MB, 0.00"), 0u)
      << outcome.error;
  for (const char* word : {" of 7.5 MB in use) with one sample at a time", "parameters 0.00",
                           "optimizer state 0.00", "the batch 0.00", "checkpoint copy 0.00"})
    EXPECT_NE(outcome.error.find(word), std::string::npos) << outcome.error;
}

TEST(OutOfMemoryTest, WholeParametersOfShardsAreNamed) {
  for (const char* strategy : {"optimizer", "gradients"}) {
    MemoryWorld world = hungry_world({[](int) { return 9 * kMb; }}, 4);
    world.recipe += "[sharding]\nstrategy = '" + std::string(strategy) + "'\n";
    EXPECT_THAT(world.run("1").error, testing::HasSubstr(" MB, gathered parameters 0.0")) << strategy;
  }
  EXPECT_THAT(hungry_world({[](int) { return 9 * kMb; }}, 4).run("1").error,
              testing::Not(testing::HasSubstr("gathered")));
}

// Parameters, their gradients, AdamW's state and a rank's copies hold 5.5 MB, a whole batch takes 2.7.
TEST(OutOfMemoryTest, MemoryForCheckpointsIsThereFromTheFirstStep) {
  HungryModel::Appetite appetite;
  appetite.bytes_a_sample = [](int) { return 450'000; };
  appetite.parameters = kMb / 4;
  for (const char* interval : {"'0ba'", "'2ba'"}) {
    MemoryWorld world = hungry_world(appetite, 6);
    world.recipe.replace(world.recipe.find("'0ba'"), 5, interval);
    const auto outcome = world.run("\"auto\"");
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.schedule(), "[[0, 2]]") << interval;
  }
}

class AlgorithmFailsAt final : public Algorithm {
 public:
  explicit AlgorithmFailsAt(Event event) : event_(event) {}
  std::string name() const override { return "AlgorithmFailsAt"; }
  bool match(Event event, const State&) const override { return event == event_; }
  void apply(Event, State&, Logger&) override {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "no room at the event");
  }

 private:
  Event event_;
};

class CallbackFailsAt final : public Callback {
 public:
  explicit CallbackFailsAt(Event event) : event_(event) {}
  std::string name() const override { return "CallbackFailsAt"; }
  void run_event(Event event, State&, Logger&) override {
    if (event == event_) TORCH_CHECK_WITH(OutOfMemoryError, false, "no room at the event");
  }

 private:
  Event event_;
};

constexpr std::pair<Event, int> kOutsideOfAStep[] = {{Event::kFitStart, 0},         {Event::kEpochStart, 0},
                                                     {Event::kBeforeDataloader, 0}, {Event::kBatchEnd, 1},
                                                     {Event::kBatchCheckpoint, 1},  {Event::kEpochEnd, 2},
                                                     {Event::kEpochCheckpoint, 2},  {Event::kFitEnd, 4}};

TEST(OutOfMemoryTest, FailureInAListenerOutsideAStepIsAClearStop) {
  for (const auto& [event, step] : kOutsideOfAStep) {
    Engine::Options algorithm, callback;
    algorithm.algorithms = {std::make_shared<AlgorithmFailsAt>(event)};
    callback.callbacks = {std::make_shared<CallbackFailsAt>(event)};
    for (const auto& options : {algorithm, callback}) {
      const auto fails = [&options](int) { return options; };
      const std::string error = MemoryWorld{.recipe = mlp(4), .listeners = fails}.run("1").error;
      const std::string why = name(event) + (" after step " + std::to_string(step)) + ": out of memory";
      EXPECT_NE(error.find(": " + why), std::string::npos) << error;
      EXPECT_TRUE(error.starts_with("rank ")) << error;
    }
  }
}

TEST(OutOfMemoryTest, WordsOfALibraryAreALackOfMemoryToo) {
  HungryModel::Appetite appetite;
  appetite.words = "could not create a primitive";
  appetite.most_trained = 3;
  const MemoryWorld world = hungry_world(appetite, 3);
  const auto automatic = world.run("\"auto\""), by_hand = world.run("2");
  EXPECT_EQ(automatic.error, "");
  EXPECT_EQ(automatic.schedule(), "[[0, 2]]");
  EXPECT_TRUE(
      automatic.has_warning("step 1: rank 0 and 1 other ran out of memory (could not create a primitive)"));
  EXPECT_EQ(automatic.losses, by_hand.losses);
  EXPECT_TRUE(automatic.weights == by_hand.weights);
}

TEST(OutOfMemoryTest, WordsOfALibraryAreInTheErrorIfOneSampleIsTooMany) {
  HungryModel::Appetite appetite;
  appetite.words = "could not execute a primitive";
  const std::string error = hungry_world(appetite, 3).run("\"auto\"").error;
  EXPECT_NE(
      error.find("rank 0 and 1 other ran out of memory (could not execute a primitive) with one sample"),
      std::string::npos)
      << error;
  appetite.words = "could not find a paper";
  const std::string other = hungry_world(appetite, 3).run("\"auto\"").error;
  EXPECT_NE(other.find("step 1, Compute: in HungryModel: could not find a paper"), std::string::npos)
      << other;
}

TEST(OutOfMemoryTest, NumberOfTheUsersIsNotChanged) {
  const auto outcome = hungry_world({[](int) { return 4 * kMb; }}, 4).run("2");
  EXPECT_NE(outcome.error.find("step 1: rank 0 and 1 other ran out of memory"), std::string::npos)
      << outcome.error;
  EXPECT_NE(outcome.error.find("grad_accum = \"auto\" would continue"), std::string::npos) << outcome.error;
}

TEST(OutOfMemoryTest, FailureAfterTheVerdictIsAClearStop) {
  HungryModel::Appetite appetite;
  appetite.fails_in_commit = true;
  const auto outcome = hungry_world(appetite, 4).run("\"auto\"");
  EXPECT_NE(outcome.error.find(": step 1, its update: out of memory"), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("no room for statistics"), std::string::npos) << outcome.error;
  EXPECT_EQ(outcome.error.find('\n'), std::string::npos) << outcome.error;
}

TEST(OutOfMemoryTest, FailureInAnEvaluationIsAClearStop) {
  HungryModel::Appetite appetite;
  appetite.fails_in_evaluation = true;
  MemoryWorld world = hungry_world(appetite, 2);
  world.recipe += "[data.eval]\nkind = 'synthetic'\nsamples = 12\nshape = [3]\n";
  const auto outcome = world.run("\"auto\"");
  EXPECT_EQ(outcome.error.find("evaluation 'eval' after step 2: out of memory on 2 of 2 ranks"), 0u)
      << outcome.error;
}

// The loss that the only evaluation measured.
double evaluated_loss(const MemoryWorld::Outcome& outcome) {
  EXPECT_EQ(outcome.evaluations.size(), 1U) << outcome.error;
  return json_number(outcome.evaluations.at(0), "metrics/eval/loss");
}

// Two steps have a call each, and after them come those of the evaluation.
TEST(OutOfMemoryTest, AnEvaluationIsHeldToTheBudget) {
  const auto evaluated = [](int64_t bytes_a_sample) {
    const auto bytes = [bytes_a_sample](int call) { return call < 2 ? kMb : bytes_a_sample; };
    MemoryWorld world = hungry_world({bytes}, 2);
    world.recipe += "[data.eval]\nkind = 'synthetic'\nsamples = 12\nshape = [3]\n";
    return world.run("\"auto\"");
  };
  const auto fits = evaluated(kMb), in_parts = evaluated(2 * kMb), too_large = evaluated(9 * kMb);
  EXPECT_EQ(in_parts.error, "");
  EXPECT_NEAR(evaluated_loss(in_parts), evaluated_loss(fits), 1e-6 * evaluated_loss(fits));
  EXPECT_EQ(too_large.error.find("evaluation 'eval' after step 2: out of memory on 2 of 2 ranks with one"),
            0u)
      << too_large.error;
}

TEST(OutOfMemoryTest, AnEvaluationIsDoneInPartsThatFit) {
  std::vector<double> found;
  for (const int64_t most : {0, 1, 4}) {
    HungryModel::Appetite appetite;
    appetite.most_evaluated = most;
    MemoryWorld world = hungry_world(appetite, 2);
    world.recipe += "[data.eval]\nkind = 'synthetic'\nsamples = 22\nshape = [3]\n";
    const auto outcome = world.run("\"auto\"");
    ASSERT_EQ(outcome.error, "");
    found.push_back(evaluated_loss(outcome));
  }
  EXPECT_NEAR(found[0], found[1], 1e-6 * found[0]);
  EXPECT_NEAR(found[0], found[2], 1e-6 * found[0]);
}

// The count is part of a checkpoint: a failure that does not come again leaves its mark.
TEST(OutOfMemoryTest, ResumedRunResumesWithWhatWasEnough) {
  const Scratch folder;
  const auto train = [&](const std::string& run, const char* duration, const std::string& resume) {
    std::string text = mlp(4);
    text.replace(text.find("'0ba'"), 5, "'1ep'");
    text.replace(text.find("'4ba'"), 5, duration);
    LocalRunOptions options;
    options.run_dir = folder.path(run);
    options.resume = resume;
    options.quiet = true;
    if (resume.empty()) Meter::fail_at(1, {5});
    train_in_one_process(recipe_of(text + "grad_accum = 'auto'\n"), options);
  };
  train("whole", "'4ep'", "");
  train("parts", "'2ep'", "");
  train("parts", "'4ep'", "auto");
  EXPECT_EQ(inspect_digest(folder.path("whole")), inspect_digest(folder.path("parts")));
  const std::string metrics = read_text(folder.path("parts/metrics.jsonl"));
  EXPECT_NE(metrics.find("\"grad_accum\": 2"), std::string::npos);
  EXPECT_EQ(metrics.find("\"grad_accum\": 1"), std::string::npos);
}

}  // namespace
}  // namespace tutti
