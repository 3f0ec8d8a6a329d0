// A training with a model, data and a callback of one's own: train_digits [RECIPE [DATA]]
#include <ATen/ATen.h>
#include <actors/trainer.h>
#include <data/tensor_dataset.h>
#include <io/hdf5.h>
#include <models/classifier.h>
#include <models/layers/linear.h>
#include <training/state.h>

#include <cstdio>

struct Net final : tutti::Classifier {
  Net() {
    add_slot("first", std::make_shared<tutti::Linear>(64, 32));
    add_slot("last", std::make_shared<tutti::Linear>(32, 10));
  }
  tutti::TensorTree forward(const tutti::Batch& batch) override {
    return (*slots()[1])((*slots()[0])(batch["input"]).tanh());
  }
  const char* kind() const override { return "Net"; }
};

tutti::DatasetPtr digits(const tutti::Hdf5File& file, const std::string& group) {
  const at::Tensor input = file.read(group + "/input").to(at::kFloat).flatten(1);
  const at::Tensor target = file.read(group + "/target").to(at::kLong);
  const tutti::TensorTree::Children tensors = {{"input", input}, {"target", target}};
  return std::make_shared<tutti::TensorDataset>(tensors, /*classes=*/10);
}

struct Printer final : tutti::Callback {
  std::string name() const override { return "Printer"; }
  void epoch_end(tutti::State& state, tutti::Logger&) override {
    if (state.rank == 0) std::printf("epoch %ld: loss %.4f\n", state.timestamp.epoch, state.train_loss);
  }
};

int main(int argc, char** argv) {
  const tutti::Hdf5File file(argc > 2 ? argv[2] : "examples/data/digits.h5");
  tutti::Trainer trainer(
      {.recipe = argc > 1 ? argv[1] : "examples/cpp/train_digits.toml",
       .model = [](const tutti::SampleSpec&) { return std::make_shared<Net>(); },
       .data = {{"train", digits(file, "train")}, {"eval", digits(file, "test")}},
       .listeners = [](int) { return tutti::Engine::Options{.callbacks = {std::make_shared<Printer>()}}; }});
  return trainer.fit();
}
