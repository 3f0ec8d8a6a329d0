#include "commands/program/data_parallel.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <exception>
#include <thread>

#include "collectives/local/world.h"
#include "commands/local_train.h"
#include "data/readers/synthetic_dataset.h"
#include "models/zoo/factory.h"
#include "runtime/error.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/runtime/scratch.h"
#include "training/optimizers/sgd.h"

namespace tutti {
namespace {

using Weights = std::map<std::string, at::Tensor>;

constexpr int64_t kLoopSteps = 4;
constexpr int64_t kGlobalBatch = 18;  // the third batch has 2 samples, so two of four ranks have none

constexpr const char* kLoopRecipe = R"toml(
seed = 17
[model]
kind = "sequential"
layers = ["Linear(8, 16)", "BatchNorm1d(16)", "ReLU()", "Dropout(0.25)", "Linear(16, 7)", "ReLU()",
          "Linear(7, 4)"]
[data.train]
kind = "synthetic"
samples = 38
shape = [8]
classes = 4
batch_size = 18
shuffle = true
[optimizer]
kind = "sgd"
lr = 0.1
momentum = 0.9
[train]
max_duration = "4ba"
)toml";

struct LoopCase {
  int ranks;
  const char* strategy;
  int64_t microbatches;
  int shard_size = 0;
};
void PrintTo(const LoopCase& tried, std::ostream* out) {
  *out << tried.strategy << " on " << tried.ranks << " ranks, " << tried.microbatches << " microbatches";
}

std::string recipe_text(const LoopCase& tried) {
  std::string text = kLoopRecipe + ("grad_accum = " + std::to_string(tried.microbatches)) +
                     "\n[sharding]\nstrategy = \"" + tried.strategy + '"';
  if (tried.shard_size > 0) text += "\nshard_size = " + std::to_string(tried.shard_size);
  return text + '\n';
}

class DataParallelTest : public testing::TestWithParam<LoopCase> {
 protected:
  const Setting recipe_ = recipe_of(recipe_text(GetParam()));
  const SyntheticDataset data_{{.samples = 38, .shape = {8}, .classes = 4, .seed = 17}};
  Scratch folder_;

  Weights of_the_recipe() {
    LocalRunOptions options{.ranks = GetParam().ranks, .run_dir = folder_.path("run"), .quiet = true};
    EXPECT_EQ(train_in_one_process(recipe_, options).exit_code, 0);
    Weights weights;
    for (const auto& [name, tensor] : newest_checkpoint(folder_.path("run")).tensors)
      if (name.starts_with(kModelPrefix)) weights[name.substr(kModelPrefix.size())] = tensor;
    return weights;
  }

  // As a program of one's own does on a rank.
  void train(Ranks& ranks, const std::string& file) const {
    State state;
    state.seed = 17;
    state.model = make_model(recipe_.at("model"), data_.spec());
    DataParallel parallel(ranks, state, ShardingSettings::read(recipe_.at("sharding")));
    state.optimizer =
        std::make_unique<Sgd>(state.views, Optimizer::Common{.lr = 0.1}, Sgd::Options{.momentum = 0.9});
    const Sampler sampler({.samples = data_.size(),
                           .global_batch = kGlobalBatch,
                           .place = {.data_rank = ranks.rank(), .data_world = ranks.size()},
                           .seed = state.seed,
                           .loading = {.shuffle = true}});
    for (int64_t step = 0; step < kLoopSteps; ++step) {
      const int64_t epoch = step / sampler.batches(), batch = step % sampler.batches();
      const Batch whole = data_.get(sampler.indices(data_, epoch, batch), sampler.epoch(epoch));
      const int64_t part = (whole.samples() + GetParam().microbatches - 1) / GetParam().microbatches;
      parallel.begin_step(GetParam().microbatches);
      if (whole.samples() == 0) parallel.begin_microbatch(sampler.first_sample(batch));  // and no backward
      for (int64_t first = 0; first < whole.samples(); first += part) {
        parallel.begin_microbatch(sampler.first_sample(batch) + first);
        state.batch = whole.narrow(first, std::min(part, whole.samples() - first));
        const at::Tensor loss = state.loss_of(state.forward(state.batch), state.batch);
        parallel.backward(loss, static_cast<double>(state.batch.samples()));
      }
      const DataParallel::Sums sums = parallel.end_step();
      EXPECT_EQ(sums.weight, sampler.global_samples(batch));
      EXPECT_TRUE(sums.finite);
      state.optimizer->step(at::scalar_tensor(sums.weight, at::kFloat));
      state.to_next_batch(sampler.global_samples(batch), 0, 0.0);
    }
    parallel.save_weights(file);
  }

  Weights of_the_loop() {
    const std::string file = folder_.path("loop.safetensors");
    const auto world = LocalWorld::make(GetParam().ranks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < GetParam().ranks; ++rank)
      threads.emplace_back([&, rank] {
        Ranks ranks(world->factory(rank));
        try {
          train(ranks, file);
        } catch (const std::exception& error) {
          ADD_FAILURE() << "rank " << rank << ": " << error.what();
          std::quick_exit(1);  // the other ranks would wait
        }
      });
    for (std::thread& thread : threads) thread.join();
    return read_weights(file);
  }
};

TEST_P(DataParallelTest, AnOwnLoopTrainsTheWeightsOfTheRecipe) {
  const Weights recipe = of_the_recipe(), loop = of_the_loop();
  ASSERT_EQ(recipe.size(), loop.size());
  EXPECT_EQ(recipe.size(), 11);
  for (const auto& [name, weight] : recipe) {
    ASSERT_TRUE(loop.contains(name)) << name;
    EXPECT_TRUE(weight.equal(loop.at(name))) << name << '\n' << weight << '\n' << loop.at(name);
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, DataParallelTest,
                         testing::Values(LoopCase{1, "none", 1}, LoopCase{1, "none", 2},
                                         LoopCase{2, "none", 1}, LoopCase{4, "none", 2},
                                         LoopCase{2, "optimizer", 1}, LoopCase{2, "gradients", 2},
                                         LoopCase{2, "full", 1}, LoopCase{4, "full", 2},
                                         LoopCase{4, "hybrid", 2, 2}));

// A loop may catch the error of a bad batch, and continue.
TEST(DataParallel, AStepLeftByAnExceptionIsSkippedOnAllRanks) {
  constexpr int kRanks = 2;
  for (const char* strategy : {"none", "full"}) {
    const Setting recipe = recipe_of(recipe_text({kRanks, strategy, 1}));
    const SyntheticDataset data({.samples = 8, .shape = {8}, .classes = 4, .seed = 17});
    const auto world = LocalWorld::make(kRanks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        Ranks ranks(world->factory(rank));
        State state;
        state.seed = 17;
        state.model = make_model(recipe.at("model"), data.spec());
        DataParallel parallel(ranks, state, ShardingSettings::read(recipe.at("sharding")));
        const Batch batch = data.get(std::vector<int64_t>{rank, rank + 2}, {17});
        for (const bool bad : {true, false}) {
          parallel.begin_step();
          parallel.begin_microbatch(2 * rank);
          if (bad && rank == 1) continue;  // as after catching an exception
          parallel.backward(state.loss_of(state.forward(batch), batch), 2);
          EXPECT_EQ(parallel.end_step().finite, !bad) << strategy << " on rank " << rank;
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(DataParallel, AStepOfNoMicrobatchesCountsForNothing) {
  Ranks ranks(LocalWorld::make(1)->factory(0));
  State state;
  const SyntheticDataset data({.samples = 2, .shape = {8}, .classes = 4, .seed = 17});
  state.model = make_model(recipe_of(kLoopRecipe).at("model"), data.spec());
  DataParallel parallel(ranks, state);
  parallel.begin_step(0);
  const DataParallel::Sums sums = parallel.end_step();
  EXPECT_EQ(sums.weight, 0);
  EXPECT_FALSE(sums.finite);
}

TEST(DataParallel, AStateWithoutAModelIsRefused) {
  Ranks ranks(LocalWorld::make(1)->factory(0));
  State state;
  EXPECT_THROW(DataParallel(ranks, state), UserError);
}

}  // namespace
}  // namespace tutti
