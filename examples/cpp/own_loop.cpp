// A custom training loop around tutti's State and Engine, with algorithms and callbacks as in tutti's own
// loop, on all ranks: mpirun -np 2 ./own_loop [none|full] [FILE]. "full" shards the parameters; FILE gets the
// trained weights (.safetensors). own_loop.toml trains the same weights.
#include <ATen/ATen.h>
#include <tutti/commands/program/data_parallel.h>
#include <tutti/commands/trainer.h>
#include <tutti/data/readers/synthetic_dataset.h>
#include <tutti/models/zoo/mlp.h>
#include <tutti/runtime/error.h>
#include <tutti/training/engine/engine.h>
#include <tutti/training/optimizers/sgd.h>
#include <tutti/training/state.h>

#include <cstdio>
#include <string>

namespace {

// Doubles the learning rate once, after the third batch.
struct Boost final : tutti::Algorithm {
  std::string name() const override { return "Boost"; }
  bool match(tutti::Event event, const tutti::State& state) const override {
    return event == tutti::Event::kBatchEnd && state.timestamp.batch == 3;
  }
  void apply(tutti::Event, tutti::State& state, tutti::Logger&) override {
    state.optimizer->set_lr(2 * state.optimizer->lr());
  }
};

struct Printer final : tutti::Callback {
  std::string name() const override { return "Printer"; }
  void batch_end(tutti::State& state, tutti::Logger&) override {
    if (state.topology.rank == 0)
      std::printf("batch %ld: loss %.4f, lr %g\n", state.timestamp.batch, state.train_loss,
                  state.optimizer->lr());
  }
};

// Forward and backward of this rank's part of the batch. A rank without samples has neither.
void train_part(tutti::State& state, tutti::Engine& engine, tutti::DataParallel& parallel) {
  using tutti::Event;
  engine.run_event(Event::kBeforeForward);
  state.outputs = state.model->forward(state.batch);
  engine.run_event(Event::kAfterForward);
  engine.run_event(Event::kBeforeLoss);
  state.loss = state.model->loss(state.outputs, state.batch);
  engine.run_event(Event::kAfterLoss);
  engine.run_event(Event::kBeforeBackward);
  parallel.backward(state.loss, state.model->loss_weight(state.batch));
  engine.run_event(Event::kAfterBackward);
}

int train(tutti::ShardingStrategy strategy, const std::string& weights) {
  const tutti::SyntheticDataset data({.samples = 80, .shape = {8}, .classes = 4, .seed = 17});
  tutti::Ranks ranks;  // MPI, until the end of this function
  tutti::State state;
  state.seed = 17;
  state.model = std::make_shared<tutti::Mlp>(tutti::MlpOptions{8, {16}, 4});
  tutti::DataParallel parallel(ranks, state, {.strategy = strategy});
  state.optimizer = std::make_unique<tutti::Sgd>(state.views, tutti::Optimizer::Common{.lr = 0.1},
                                                 tutti::Sgd::Options{.momentum = 0.9});
  tutti::Logger logger;
  tutti::Engine engine(
      state, logger, {.algorithms = {std::make_shared<Boost>()}, .callbacks = {std::make_shared<Printer>()}});
  const tutti::Sampler sampler({.samples = data.size(),
                                .global_batch = 16,
                                .place = {.data_rank = ranks.rank(), .data_world = ranks.size()},
                                .seed = state.seed});
  engine.run_event(tutti::Event::kFitStart);
  for (int64_t batch = 0; batch < sampler.batches(); ++batch) {
    state.batch = data.get(sampler.indices(data, /*epoch=*/0, batch), sampler.epoch(0));
    engine.run_event(tutti::Event::kBatchStart);
    parallel.begin_step();
    parallel.begin_microbatch(sampler.first_sample(batch));
    if (state.batch.samples() > 0) train_part(state, engine, parallel);
    const tutti::DataParallel::Sums sums = parallel.end_step();
    engine.run_event(tutti::Event::kAfterTrainBatch);
    if (sums.finite) state.optimizer->step(at::scalar_tensor(sums.weight, at::kFloat));
    state.to_next_batch(sampler.global_samples(batch), 0, 0.0);
    engine.run_event(tutti::Event::kBatchEnd);
  }
  engine.run_event(tutti::Event::kFitEnd);
  engine.close();
  if (!weights.empty()) parallel.save_weights(weights);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string sharding = argc > 1 ? argv[1] : "none", weights = argc > 2 ? argv[2] : "";
  return tutti::run_program([&] {
    if (sharding != "none" && sharding != "full")
      throw tutti::UserError(sharding + ": expected none or full, and a file for the weights");
    return train(sharding == "full" ? tutti::ShardingStrategy::kFull : tutti::ShardingStrategy::kNone,
                 weights);
  });
}
