// A custom training loop around tutti's State and Engine, with algorithms and callbacks as in tutti's own
// loop. One rank, synthetic data.
#include <ATen/ATen.h>
#include <tutti/data/readers/synthetic_dataset.h>
#include <tutti/models/zoo/mlp.h>
#include <tutti/training/engine/engine.h>
#include <tutti/training/optimizers/sgd.h>
#include <tutti/training/state.h>

#include <cstdio>
#include <numeric>

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
    std::printf("batch %ld: loss %.4f, lr %g\n", state.timestamp.batch, state.loss.item<double>(),
                state.optimizer->lr());
  }
};

void build(tutti::State& state) {
  state.model = std::make_shared<tutti::Mlp>(tutti::MlpOptions{8, {16}, 4});
  tutti::materialise(*state.model, /*seed=*/17);
  state.parameters = tutti::parameters(*state.model);
  for (const auto& one : state.parameters)
    state.views.push_back(tutti::whole_view(one.name, one.parameter->tensor));
  state.optimizer = std::make_unique<tutti::Sgd>(state.views, tutti::Optimizer::Common{.lr = 0.1},
                                                 tutti::Sgd::Options{.momentum = 0.9});
}

void step(tutti::State& state, tutti::Engine& engine) {
  using tutti::Event;
  engine.run_event(Event::kBeforeForward);
  state.outputs = state.model->forward(state.batch);
  engine.run_event(Event::kAfterForward);
  engine.run_event(Event::kBeforeLoss);
  state.loss = state.model->loss(state.outputs, state.batch);
  engine.run_event(Event::kAfterLoss);
  engine.run_event(Event::kBeforeBackward);
  state.loss.backward();
  engine.run_event(Event::kAfterBackward);
}

}  // namespace

int main() {
  const tutti::SyntheticDataset data({.samples = 80, .shape = {8}, .classes = 4, .seed = 17});
  tutti::State state;
  tutti::Logger logger;
  build(state);
  tutti::Engine engine(
      state, logger, {.algorithms = {std::make_shared<Boost>()}, .callbacks = {std::make_shared<Printer>()}});
  engine.run_event(tutti::Event::kFitStart);
  for (int64_t first = 0; first < data.size(); first += 16) {
    std::vector<int64_t> indices(16);
    std::iota(indices.begin(), indices.end(), first);
    state.batch = data.get(indices, {.seed = 17, .number = 0});
    engine.run_event(tutti::Event::kBatchStart);
    step(state, engine);
    for (std::size_t p = 0; p < state.views.size(); ++p)
      state.views[p].grad = state.parameters[p].parameter->tensor.grad();
    engine.run_event(tutti::Event::kAfterTrainBatch);
    state.optimizer->step(at::scalar_tensor(1.0, at::kFloat));
    for (const auto& one : state.parameters) one.parameter->tensor.mutable_grad().reset();
    state.to_next_batch(16, 0, 0.0);
    engine.run_event(tutti::Event::kBatchEnd);
  }
  engine.run_event(tutti::Event::kFitEnd);
  engine.close();
}
