#include "actors/loader.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "actors/rank.h"
#include "collectives/local/group.h"
#include "collectives/local/transport.h"
#include "commands/inspect.h"
#include "commands/local_train.h"
#include "data/readers/synthetic_dataset.h"
#include "data/readers/transformed_dataset.h"
#include "data/transforms/image_transforms.h"
#include "job/make_job.h"
#include "runtime/actor/scheduler.h"
#include "runtime/actor/token_scheduler.h"
#include "runtime/error.h"
#include "tests/actors/sleeping_world.h"
#include "tests/runtime/actor/scripted_actor.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

constexpr int64_t kSamples = 50;

Sampler loader_sampler() {
  Sampler::Plan plan{.samples = kSamples, .global_batch = 16, .seed = 3};
  plan.loading.shuffle = true;
  return Sampler(plan);
}

DatasetPtr augmented_points() {
  const auto below = std::make_shared<const SyntheticDataset>(
      SyntheticDataset::Options{.samples = kSamples, .shape = {3, 8, 8}, .seed = 1});
  Transforms transforms;
  append(transforms, "random_crop", random_crop_transform({.size = {6, 6}}));
  append(transforms, "flip", flip_transform(0.5));
  return std::make_shared<const TransformedDataset>(below, transforms, "");
}

// A Loader's batches for eight credits, two epochs; `before` is sent to it first.
std::vector<Batch> loaded(const DatasetPtr& data, std::unique_ptr<Workers> workers,
                          const std::optional<AddTransforms>& before = std::nullopt,
                          const Sampler& sampler = loader_sampler(), ThreadTime* took = nullptr) {
  constexpr int kBatches = 8;
  ThreadScheduler scheduler;
  RingRecorder recorder;
  const ActorId loader = scheduler.reserve("loader", 0), consumer = scheduler.reserve("consumer", 0);
  std::vector<Batch> batches;
  scheduler.install(loader, std::make_unique<Loader>(
                                data, [&](const RankTopology&) { return sampler; }, consumer, recorder,
                                std::move(workers)));
  scheduler.post(loader, Join{});
  play(scheduler, consumer,
       {.start =
            [&](Context& context) {
              if (before) context.send(loader, *before);
              context.send(loader, Start{});
              context.send(loader, Credit{kBatches});
            },
        .receive =
            [&](Context& context, Envelope& envelope) {
              const auto* ready = envelope.message.get_if<BatchReady>();
              batches.push_back(ready->batch);
              if (took) *took += ready->took;
              if (batches.size() < kBatches) return;
              context.send(loader, Stop{});
              context.stop();
            }});
  scheduler.run();
  return batches;
}

// With two ranks the parts of batches have 8 samples. The second Join finds credits that are not used.
TEST(LoaderTest, AJoinBeginsAnewWithItsRanks) {
  TokenScheduler scheduler;
  RingRecorder recorder;
  const ActorId loader = scheduler.reserve("loader", 0), consumer = scheduler.reserve("consumer", 0);
  const auto sampler_of = [](const RankTopology& place) {
    return Sampler({.samples = kSamples,
                    .global_batch = 16,
                    .place = {.data_rank = place.data_rank, .data_world = place.data_world},
                    .seed = 3});
  };
  scheduler.install(loader, std::make_unique<Loader>(augmented_points(), sampler_of, consumer, recorder));
  std::vector<int64_t> samples;
  const auto join = [&](Context& context, int ranks) {
    context.send(loader, Join{.topology = {.world = ranks, .data_world = ranks}});
    context.send(loader, Start{});
    context.send(loader, Credit{2});
  };
  play(scheduler, consumer,
       {.start = [&](Context& context) { join(context, 2); },
        .receive =
            [&](Context& context, Envelope& envelope) {
              const auto* ready = envelope.message.get_if<BatchReady>();
              samples.push_back(ready->batch["input"].size(0));
              if (samples.size() == 1) {
                context.sleep(std::chrono::seconds(1));
                context.send(loader, Credit{3});
                join(context, 1);
              }
              if (samples.size() < 4) return;
              EXPECT_EQ(ready->position.batch, 1);
              context.send(loader, Stop{});
              context.stop();
            }});
  scheduler.run();
  EXPECT_THAT(samples, testing::ElementsAre(8, 8, 16, 16));
}

void expect_same(const std::vector<Batch>& one, const std::vector<Batch>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    const auto expected = one[i].leaves(), found = other[i].leaves();
    ASSERT_EQ(expected.size(), found.size());
    for (std::size_t leaf = 0; leaf < expected.size(); ++leaf) {
      EXPECT_EQ(found[leaf].first, expected[leaf].first);
      EXPECT_TRUE(at::equal(found[leaf].second, expected[leaf].second)) << "batch " << i;
      EXPECT_EQ(found[leaf].second.strides(), expected[leaf].second.strides());
    }
  }
}

// Batches have 16, 16, 16 and 2 samples: fewer than there are threads, too.
TEST(LoaderTest, AnyNumberOfWorkersGivesTheSameBatches) {
  const auto alone = loaded(augmented_points(), nullptr);
  EXPECT_EQ(alone[3]["input"].size(0), 2);
  EXPECT_FALSE(at::equal(alone[0]["input"], alone[4]["input"])) << "another epoch";
  for (const int threads : {1, 2, 3, 7})
    expect_same(alone, loaded(augmented_points(), start_workers(threads)));
}

// Notes the threads that read.
class Watched final : public Dataset {
 public:
  int64_t size() const override { return kSamples; }
  SampleSpec spec() const override { return {{{"input", {1}}}, 0}; }
  Batch get(std::span<const int64_t> indices, const Epoch&) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::lock_guard lock(mutex);
    readers.insert(std::this_thread::get_id());
    return TensorTree::Children{{"input", at::zeros({std::ssize(indices), 1})}};
  }
  uint64_t digest() const override { return 1; }

  mutable std::mutex mutex;
  mutable std::set<std::thread::id> readers;
};

TEST(LoaderTest, WorkersShareABatch) {
  const auto inline_data = std::make_shared<Watched>(), shared = std::make_shared<Watched>();
  loaded(inline_data, nullptr);
  EXPECT_EQ(inline_data->readers.size(), 1u);
  loaded(shared, start_workers(3));
  EXPECT_EQ(shared->readers.size(), 3u);
}

// A part of a batch waits until parts of other batches have begun.
class Meeting final : public Dataset {
 public:
  int64_t size() const override { return kSamples; }
  SampleSpec spec() const override { return {{{"input", {1}}}, 0}; }
  Batch get(std::span<const int64_t> indices, const Epoch&) const override {
    std::unique_lock lock(mutex_);
    ++here_;
    came_.notify_all();
    if (!came_.wait_for(lock, std::chrono::seconds(60), [&] { return here_ >= 3; })) met = false;
    return TensorTree::Children{{"input", at::zeros({std::ssize(indices), 1})}};
  }
  uint64_t digest() const override { return 1; }

  mutable std::atomic<bool> met = true;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable came_;
  mutable int here_ = 0;
};

// Of one sample each: they have one part.
TEST(LoaderTest, SeveralBatchesAreReadAtATime) {
  const auto data = std::make_shared<Meeting>();
  const Sampler singles({.samples = kSamples, .global_batch = 1, .seed = 3});
  EXPECT_EQ(loaded(data, start_workers(3), std::nullopt, singles).size(), 8u);
  EXPECT_TRUE(data->met);
}

TEST(LoaderTest, ABatchKnowsTheTimeItTook) {
  ThreadTime alone, shared;
  loaded(std::make_shared<Watched>(), nullptr, std::nullopt, loader_sampler(), &alone);
  loaded(std::make_shared<Watched>(), start_workers(3), std::nullopt, loader_sampler(), &shared);
  constexpr Nanoseconds kSleep = std::chrono::milliseconds(2);
  EXPECT_GE(alone.all, 8 * kSleep) << "8 batches of a part";
  EXPECT_GE(shared.all, 40 * kSleep) << "6 batches in 6 parts, 2 in 2";
  EXPECT_GT(alone.blocked(), alone.all / 4) << "it sleeps nearly all the time";
}

// Cannot read a sample.
class Failing final : public Dataset {
 public:
  explicit Failing(std::function<void()> fail) : fail_(std::move(fail)) {}
  int64_t size() const override { return kSamples; }
  SampleSpec spec() const override { return {{{"input", {1}}}, 0}; }
  Batch get(std::span<const int64_t> indices, const Epoch&) const override {
    if (std::ranges::count(indices, 17) > 0) fail_();
    return TensorTree::Children{{"input", at::zeros({std::ssize(indices), 1})}};
  }
  uint64_t digest() const override { return 1; }

 private:
  std::function<void()> fail_;
};

TEST(LoaderTest, AnErrorInAWorkerIsTheLoadersAsWithoutWorkers) {
  const auto why = [](std::function<void()> fail, std::unique_ptr<Workers> workers) {
    return message_of<RunError>(
        [&] { loaded(std::make_shared<Failing>(std::move(fail)), std::move(workers)); });
  };
  const auto of_user = [] { throw UserError("sample 17 is missing"); };
  const auto of_memory = [] { TORCH_CHECK_WITH(OutOfMemoryError, false, "no memory for sample 17"); };
  EXPECT_THAT(why(of_user, nullptr), ContainsRegex("epoch 1, step [0-9]+, Loader: sample 17 is missing"));
  EXPECT_EQ(why(of_user, start_workers(2)), why(of_user, nullptr));
  EXPECT_THAT(why(of_memory, nullptr),
              HasSubstr("Loader: a batch cannot be loaded: out of memory, and it cannot"));
  EXPECT_THAT(why(of_memory, nullptr), HasSubstr(": no memory for sample 17"));
  EXPECT_THAT(why([] { throw std::bad_alloc(); }, nullptr),
              HasSubstr("a batch cannot be loaded: out of memory"));
  EXPECT_THAT(why([] { std::map<int, int>().at(17); }, nullptr),
              HasSubstr("a batch cannot be loaded: a name or index is looked up that does not exist"));
  EXPECT_EQ(why(of_memory, start_workers(3)), why(of_memory, nullptr));
}

TEST(LoaderTest, AddedTransformsAreApplied) {
  AddTransforms message;
  append(message.added, "Mirror", flip_transform(1));
  const auto plain = loaded(augmented_points(), nullptr);
  const auto mirrored = loaded(augmented_points(), start_workers(2), message);
  ASSERT_EQ(plain.size(), mirrored.size());
  for (std::size_t i = 0; i < plain.size(); ++i)
    EXPECT_TRUE(at::equal(mirrored[i]["input"], plain[i]["input"].flip({3})));
}

// ---- whole runs

// 5 batches an epoch.
std::string image_recipe(const std::string& train, const std::string& data = "") {
  return "seed = 5\n[model]\nkind = 'mlp'\nhidden = [8]\n[data.train]\nkind = 'synthetic'\nsamples = 100\n"
         "batch_size = 24\nshuffle = true\nshape = [3, 8, 8]\n" +
         data +
         "[[data.train.transforms]]\nkind = 'random_crop'\nsize = 8\npadding = 2\n"
         "[[data.train.transforms]]\nkind = 'flip'\n[optimizer]\nkind = 'adamw'\n"
         "[checkpoint]\ninterval = '1ep'\n[train]\n" +
         train;
}

LocalRunOptions local(int ranks, const std::string& run_dir) {
  LocalRunOptions options;
  options.ranks = ranks;
  options.run_dir = run_dir;
  options.quiet = true;
  return options;
}

// One rank, with threads for its actors and for its data.
void train_on_threads(const std::string& recipe, const std::string& run_dir, const std::string& resume,
                      std::atomic<int>* asked) {
  const Job job = make_job(recipe_of(recipe), {1, run_dir, resume, 0, "threads"});
  RankEnvironment environment;
  environment.groups = {LocalFabric::make(1)->group(0)};
  environment.transport = LocalNetwork(1).transport(0);
  environment.outside.start_workers = [asked](int threads) {
    *asked += threads;
    return start_workers(threads);
  };
  ThreadScheduler scheduler;
  add_rank(scheduler, job, environment);
  scheduler.run();
}

TEST(LoaderTest, ARunThatResumesInMidEpochHasTheSameBitsWithWorkers) {
  const Scratch folder;
  train_in_one_process(recipe_of(image_recipe("max_duration = '3ep'\n")), local(1, folder.path("whole")));
  std::atomic<int> asked = 0;
  const std::string workers = "num_workers = 3\n";
  train_on_threads(image_recipe("max_duration = '7ba'\n", workers), folder.path("parts"), "", &asked);
  EXPECT_NE(inspect_digest(folder.path("parts")), inspect_digest(folder.path("whole")));
  train_on_threads(image_recipe("max_duration = '3ep'\n", workers), folder.path("parts"), "auto", &asked);
  EXPECT_EQ(inspect_digest(folder.path("parts")), inspect_digest(folder.path("whole")));
  EXPECT_EQ(asked, 6);
}

TEST(LoaderTest, WorkersOfTheRecipeAlterNothingWhereRanksShareAProcess) {
  const Scratch folder;
  for (const std::string workers : {"num_workers = 4\n", ""})
    train_in_one_process(recipe_of(image_recipe("max_duration = '2ep'\n", workers)),
                         local(2, folder.path("run" + std::to_string(workers.size()))));
  EXPECT_EQ(inspect_digest(folder.path("run0")), inspect_digest(folder.path("run16")));
}

TEST(LoaderTest, OtherTransformsAreOtherDataForARunThatResumes) {
  const Scratch folder;
  train_in_one_process(recipe_of(image_recipe("max_duration = '1ep'\n")), local(1, folder.path("run")));
  std::string other = image_recipe("max_duration = '2ep'\n");
  other.replace(other.find("padding = 2"), 11, "padding = 1");
  LocalRunOptions again = local(1, folder.path("run"));
  again.resume = "auto";
  EXPECT_THAT(message_of<UserError>([&] { train_in_one_process(recipe_of(other), again); }),
              HasSubstr("it was trained on other data than [data.train] names, or with other transforms"));
}

// Mirrors all images.
class Mirror final : public Algorithm {
 public:
  std::string name() const override { return "Mirror"; }
  bool match(Event event, const State&) const override { return event == Event::kFitStart; }
  void apply(Event, State& state, Logger&) override {
    state.add_transform(name(), flip_transform(1));
    ++applied;
  }
  static inline std::atomic<int> applied = 0;
};

// Twice mirrored would be as it was.
TEST(LoaderTest, AnAlgorithmsTransformIsAddedOnceOnEachRankHoweverOftenTheRunTrains) {
  const Scratch folder;
  LocalRunOptions options = local(2, folder.path("algorithm"));
  options.prepare = [](Job& job) {
    job.listeners = [](int) { return Engine::Options{.algorithms = {std::make_shared<Mirror>()}}; };
    job.tasks = {train_on("1ep")};
  };
  Mirror::applied = 0;
  train_in_one_process(recipe_of(image_recipe("max_duration = '1ep'\n")), options);
  EXPECT_EQ(Mirror::applied, 4);
  const std::string last = "[[data.train.transforms]]\nkind = 'flip'\n";
  std::string recipe = image_recipe("max_duration = '2ep'\n");
  train_in_one_process(recipe_of(recipe), local(2, folder.path("without")));
  recipe.insert(recipe.find(last) + last.size(), last + "p = 1\n");
  train_in_one_process(recipe_of(recipe), local(2, folder.path("recipe")));
  EXPECT_EQ(inspect_digest(folder.path("algorithm")), inspect_digest(folder.path("recipe")));
  EXPECT_NE(inspect_digest(folder.path("algorithm")), inspect_digest(folder.path("without")));
}

}  // namespace
}  // namespace tutti
