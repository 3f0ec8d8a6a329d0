// A training loop of one's own with the function of an algorithm, mixup_batch, and the same training by the
// Trainer with the recipe's "mixup": their losses are equal, bit for bit.
#include <ATen/ATen.h>
#include <tutti/algorithms/augmentation/mixup.h>
#include <tutti/commands/trainer.h>
#include <tutti/data/readers/synthetic_dataset.h>
#include <tutti/models/losses.h>
#include <tutti/models/zoo/mlp.h>
#include <tutti/training/optimizers/sgd.h>
#include <tutti/training/state.h>

#include <cstdio>
#include <numeric>
#include <vector>

using namespace tutti;

namespace {

constexpr uint64_t kSeed = 17;
constexpr int64_t kBatch = 16;

constexpr const char* kRecipe = R"(
run_name = "functional_loop"
seed = 17

[model]
kind = "mlp"
hidden = [16]

[data.train]
kind = "program"
batch_size = 16

[optimizer]
kind = "sgd"
lr = 0.1
momentum = 0.9

[[algorithms]]
kind = "mixup"
alpha = 0.2

[train]
max_duration = "1ep"
)";

// Numbers keyed by seed, name and step are those that the Trainer draws.
MixedUp mixed_up(const Batch& batch, int64_t step) {
  const double mixing = draw_mixing(0.2, *make_draws(kSeed, {"MixUp", step}));
  const at::Tensor partners = make_draws(kSeed, {"MixUp/partners", step})->permutation(kBatch);
  return mixup_batch(batch["input"], batch["target"], mixing, partners);
}

at::Tensor loss_of(Mlp& model, Batch batch, int64_t step) {
  const MixedUp mixed = mixed_up(batch, step);
  batch.set("input", mixed.input);
  const Outputs scores = model.forward(batch);
  const at::Tensor target = dense_target(scores.tensor(), batch["target"]);
  const at::Tensor target_perm = dense_target(scores.tensor(), mixed.target_perm);
  batch.set("target", at::lerp(target, target_perm, mixed.mixing));
  return model.loss(scores, batch);
}

std::vector<float> own_losses(const Dataset& data) {
  Mlp model({8, {16}, 4});
  materialise(model, kSeed);
  const auto parameters = tutti::parameters(model);
  std::vector<ParamView> views;
  for (const auto& one : parameters) views.push_back(whole_view(one.name, one.parameter->tensor));
  Sgd optimizer(views, {.lr = 0.1}, {.momentum = 0.9});
  std::vector<float> losses;
  for (int64_t step = 0; step < data.size() / kBatch; ++step) {
    std::vector<int64_t> indices(kBatch);
    std::iota(indices.begin(), indices.end(), step * kBatch);
    const at::Tensor loss = loss_of(model, data.get(indices, {.seed = kSeed}), step);
    loss.backward();
    for (std::size_t p = 0; p < views.size(); ++p) views[p].grad = parameters[p].parameter->tensor.grad();
    optimizer.step(at::scalar_tensor(1.0, at::kFloat));
    for (const auto& one : parameters) one.parameter->tensor.mutable_grad().reset();
    losses.push_back(loss.item<float>());
  }
  return losses;
}

struct Losses final : Callback {
  explicit Losses(std::vector<float>& all) : all(all) {}
  std::string name() const override { return "Losses"; }
  void after_loss(State& state, Logger&) override { all.push_back(state.loss.item<float>()); }
  std::vector<float>& all;
};

int compare() {
  const auto data = std::make_shared<SyntheticDataset>(
      SyntheticDataset::Options{.samples = 160, .shape = {8}, .classes = 4, .seed = kSeed});
  std::vector<float> trained;
  Trainer trainer({.recipe = kRecipe, .data = {{"train", data}}, .listeners = [&](int) {
                     return Engine::Options{.callbacks = {std::make_shared<Losses>(trained)}};
                   }});
  if (const int code = trainer.fit(); code != 0) return code;
  const std::vector<float> own = own_losses(*data);
  for (std::size_t step = 0; step < own.size(); ++step)
    std::printf("step %zu: loss %a by the own loop, %a by the Trainer\n", step, own[step], trained.at(step));
  std::printf("%zu losses, %s\n", own.size(), own == trained ? "the same bits" : "other bits");
  return own == trained ? 0 : 1;
}

}  // namespace

int main() { return run_program(compare); }
