#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "commands/inspect.h"
#include "commands/local_train.h"
#include "io/checkpoint/checkpoint.h"
#include "runtime/error.h"
#include "tests/actors/memory_world.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/sim/planted_bugs/broken_group.h"
#include "training/state.h"

namespace tutti {
namespace {

// 5 steps an epoch; a bucket for each parameter; of three layers one is frozen from the third epoch on.
std::string freezing(const std::string& algorithms) {
  return "seed = 5\n[model]\nkind = 'mlp'\nhidden = [16, 16]\n[data.train]\nkind = 'synthetic'\nsamples = "
         "100\n"
         "batch_size = 20\nshape = [12]\n[optimizer]\nkind = 'sgd'\nlr = 0.1\nmomentum = 0.9\nweight_decay = "
         "0.1\n"
         "[collectives]\nbucket_mb = 1e-5\n[train]\nmax_duration = '4ep'\n" +
         algorithms;
}
const std::string kFreezing = "[[algorithms]]\nkind = 'layer_freezing'\nfreeze_start = 0.0\n";

using Posted = std::map<int64_t, int>;  // buckets, by step

class CountsBuckets final : public Recorder {
 public:
  explicit CountsBuckets(Posted& posted) : posted_(posted) {}
  void record(const TraceEvent& event) override {
    const std::lock_guard lock(mutex_);
    if (event.kind == TraceKind::kReduceBucket) ++posted_[event.step];
  }
  std::vector<TraceEvent> last(int) const override { return {}; }
  std::size_t peek(std::span<TraceEvent>) const override { return 0; }

 private:
  Posted& posted_;
  std::mutex mutex_;
};

TEST(FrozenLayers, AreNotReduced) {
  for (const char* parts : {"1", "2"}) {
    std::vector<Posted> posted(2);
    MemoryWorld world{.recipe = freezing(kFreezing)};
    world.recorder = [&](int rank) { return std::make_unique<CountsBuckets>(posted.at(rank)); };
    EXPECT_EQ(world.run(parts).error, "");
    Posted expected;
    for (int64_t step = 0; step < 20; ++step) expected[step] = step < 10 ? 6 : 4;
    EXPECT_EQ(posted, std::vector(2, expected)) << parts;
  }
}

// The bytes of a rank's collectives, by step.
struct Wire {
  int64_t step = 0;
  std::map<int64_t, int64_t> bytes;
};

class NotesStep final : public Recorder {
 public:
  explicit NotesStep(Wire& wire) : wire_(wire) {}
  void record(const TraceEvent& event) override {
    if (event.kind == TraceKind::kBatch) wire_.step = event.step;
  }
  std::vector<TraceEvent> last(int) const override { return {}; }
  std::size_t peek(std::span<TraceEvent>) const override { return 0; }

 private:
  Wire& wire_;
};

class CountsBytes final : public GroupBelow {
 public:
  CountsBytes(std::shared_ptr<Group> below, Wire& wire) : GroupBelow(std::move(below)), wire_(wire) {}
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override {
    return count(GroupBelow::all_reduce(inout, label));
  }
  WorkPtr reduce_scatter(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override {
    return count(GroupBelow::reduce_scatter(input, out, cut, label));
  }
  WorkPtr all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override {
    return count(GroupBelow::all_gather(input, out, cut, label));
  }

 private:
  WorkPtr count(WorkPtr work) {
    wire_.bytes[wire_.step] += static_cast<int64_t>(work->header().bytes);
    return work;
  }

  Wire& wire_;
};

// The frozen layer has 12 x 16 weights and 16 biases. Under `full` all are gathered for forward as before,
// but not for backward; where parameters stay, they are gathered in the first step after they are frozen, and
// a number of 8 bytes says in each step that no rank has changed them.
TEST(FrozenLayers, CostNoBytesUnderAnyStrategy) {
  const int64_t layer = 4 * (12 * 16 + 16);
  const auto saved = [](const std::string& strategy, int ranks, int64_t step) {
    std::vector<Wire> wires(static_cast<std::size_t>(ranks));
    MemoryWorld world{.recipe = freezing(kFreezing + "[sharding]\nstrategy = '" + strategy + "'\n" +
                                         (strategy == "hybrid" ? "shard_size = 2\n" : "")),
                      .ranks = ranks};
    world.recorder = [&](int rank) { return std::make_unique<NotesStep>(wires.at(rank)); };
    world.group = [&](std::shared_ptr<Group> below, int rank) {
      return std::make_shared<CountsBytes>(std::move(below), wires.at(rank));
    };
    EXPECT_EQ(world.run("1").error, "") << strategy;
    EXPECT_EQ(wires[0].bytes[5], wires[0].bytes[9]) << strategy;
    return wires[0].bytes[5] - wires[0].bytes[step];
  };
  EXPECT_EQ(saved("none", 2, 12), layer);
  for (const char* strategy : {"optimizer", "gradients"}) {
    EXPECT_EQ(saved(strategy, 2, 10), layer - 8) << strategy;
    EXPECT_EQ(saved(strategy, 2, 12), 2 * layer - 8) << strategy;
  }
  EXPECT_EQ(saved("full", 2, 12), 2 * layer);
  EXPECT_EQ(saved("hybrid", 4, 12), 2 * layer + layer / 2)
      << "and copies add up half of a layer on each rank";
}

// With any layers frozen, memory may run out on one rank and not on the other.
TEST(FrozenLayers, HaveTheSameBitsWhenMemoryRunsOut) {
  MemoryWorld world{.recipe = freezing(kFreezing)};
  const auto whole = world.run("1");
  const int64_t late = whole.allocations.at(1) * 3 / 4;
  world.failures[1] = {late};
  const auto failed = world.run("\"auto\"");
  EXPECT_EQ(failed.error, "");
  EXPECT_GT(failed.counts.back(), 1) << "no memory ran out";
  EXPECT_EQ(failed.counts.at(10), 1) << "memory ran out before layers were frozen";
  world.failures.clear();
  const auto by_hand = world.run(failed.schedule());
  EXPECT_EQ(failed.weights, by_hand.weights);
  EXPECT_EQ(failed.losses, by_hand.losses);
}

// Ends a run by an error after a step.
class EndsAfter final : public Callback {
 public:
  explicit EndsAfter(int64_t step) : step_(step) {}
  std::string name() const override { return "EndsAfter"; }
  void batch_end(State& state, Logger&) override {
    if (state.timestamp.batch == step_) throw OperatingError("ended");
  }

 private:
  int64_t step_;
};

void train_freezing(const std::string& algorithms, const std::string& run_dir, int64_t ends_after = -1) {
  LocalRunOptions options;
  options.ranks = 2;
  options.quiet = true;
  options.run_dir = run_dir;
  options.resume = "auto";
  options.prepare = [=](Job& job) {
    job.listeners = [=](int) {
      return Engine::Options{.callbacks = {std::make_shared<EndsAfter>(ends_after)}};
    };
  };
  train_in_one_process(recipe_of(freezing("grad_accum = 2\n[checkpoint]\ninterval = '1ba'\n" + algorithms)),
                       options);
}

// Before layers are frozen, as they are, and afterwards; by themselves and beside other algorithms.
TEST(FrozenLayers, AreFrozenInAResumedRun) {
  const std::string others =
      "[[algorithms]]\nkind = 'ema'\nhalf_life = '3ba'\n[[algorithms]]\nkind = 'sam'\ninterval = 2\n"
      "[[algorithms]]\nkind = 'gradient_clipping'\nclipping_type = 'norm'\nclipping_threshold = 0.5\n";
  for (const std::string& algorithms : {kFreezing, kFreezing + others}) {
    const Scratch folder;
    const std::string parts = folder.path("parts"), whole = folder.path("whole");
    for (const int64_t step : {9, 10, 14})
      EXPECT_THROW(train_freezing(algorithms, parts, step), OperatingError) << step;
    train_freezing(algorithms, parts);
    train_freezing(algorithms, whole);
    EXPECT_EQ(inspect_digest(parts), inspect_digest(whole));
  }
}

// Neither momentum nor weight decay moves frozen parameters.
TEST(FrozenLayers, StandStill) {
  const Scratch folder;
  const std::string run = folder.path("run");
  EXPECT_THROW(train_freezing(kFreezing, run, 12), OperatingError);
  const auto tensors = [&] { return newest_checkpoint(run).tensors; };
  const auto before = tensors();
  train_freezing(kFreezing, run);
  const auto after = tensors();
  int still = 0;
  for (const auto& [name, tensor] : before) {
    const bool same = tensor.equal(after.at(name));
    EXPECT_EQ(same, name.find("0.") != std::string::npos) << name;
    still += same;
  }
  EXPECT_EQ(still, 6) << "weight and bias, with step and momentum";
}

// The first layer from the third epoch on, the second from step 12 on.
const std::string kUnfreezing =
    "[[model.unfreeze]]\nmatch = ['0.*']\nat = '2ep'\n[[model.unfreeze]]\nmatch = ['2.*']\nat = '12ba'\n";

TEST(UnfrozenLayers, AreReducedFromTheirTimeOn) {
  for (const char* parts : {"1", "2"}) {
    std::vector<Posted> posted(2);
    MemoryWorld world{.recipe = freezing(kUnfreezing)};
    world.recorder = [&](int rank) { return std::make_unique<CountsBuckets>(posted.at(rank)); };
    EXPECT_EQ(world.run(parts).error, "");
    Posted expected;
    for (int64_t step = 0; step < 20; ++step) expected[step] = step < 10 ? 2 : step < 12 ? 4 : 6;
    EXPECT_EQ(posted, std::vector(2, expected)) << parts;
  }
}

TEST(UnfrozenLayers, AreFrozenUntilThenInAResumedRun) {
  const Scratch folder;
  const std::string parts = folder.path("parts"), whole = folder.path("whole");
  for (const int64_t step : {7, 10, 11, 12, 15})
    EXPECT_THROW(train_freezing(kUnfreezing, parts, step), OperatingError) << step;
  train_freezing(kUnfreezing, parts);
  train_freezing(kUnfreezing, whole);
  EXPECT_EQ(inspect_digest(parts), inspect_digest(whole));
}

TEST(UnfrozenLayers, StandStillAndThenMove) {
  const auto tensors_after = [](int steps) {
    const Scratch folder;
    std::string recipe = freezing(kUnfreezing);
    recipe.replace(recipe.find("'4ep'"), 5, "'" + std::to_string(steps) + "ba'");
    LocalRunOptions options;
    options.ranks = 2;
    options.quiet = true;
    options.run_dir = folder.path();
    train_in_one_process(recipe_of(recipe), options);
    return newest_checkpoint(folder.path()).tensors;
  };
  const auto at_9 = tensors_after(9), at_10 = tensors_after(10), at_11 = tensors_after(11);
  EXPECT_TRUE(at_9.at("model/0.weight").equal(at_10.at("model/0.weight")));
  EXPECT_FALSE(at_10.at("model/0.weight").equal(at_11.at("model/0.weight")));
  EXPECT_TRUE(at_10.at("model/2.weight").equal(at_11.at("model/2.weight")));
  EXPECT_FALSE(at_9.at("model/4.weight").equal(at_10.at("model/4.weight")));
}

std::string refusal_of_unfreezing(const std::string& sections) {
  const Scratch folder;
  return message_of<UserError>([&] { train_freezing(sections, folder.path("run")); });
}

TEST(UnfrozenLayers, MustBeSomeAndNotAll) {
  const std::string unknown = refusal_of_unfreezing("[[model.unfreeze]]\nmatch = ['9.*']\nat = '2ep'\n");
  EXPECT_NE(unknown.find("no parameter that is trained matches 9.*"), unknown.npos) << unknown;
  const std::string all = refusal_of_unfreezing("[[model.unfreeze]]\nmatch = ['*']\nat = '2ep'\n");
  EXPECT_NE(all.find("no parameter is left to train at first"), all.npos) << all;
  const std::string both = refusal_of_unfreezing(kUnfreezing + kFreezing);
  EXPECT_NE(both.find("LayerFreezing"), both.npos) << both;
}

}  // namespace
}  // namespace tutti
