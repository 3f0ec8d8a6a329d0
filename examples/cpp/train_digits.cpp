// A training with a model, data and a callback of one's own: train_digits [RECIPE [DATA]]
#include <ATen/ATen.h>
#include <actors/trainer.h>
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

struct Digits final : tutti::Dataset {
  Digits(const tutti::Hdf5File& file, const std::string& group)
      : input(file.read(group + "/input").to(at::kFloat).flatten(1)),
        target(file.read(group + "/target").to(at::kLong)) {}
  int64_t size() const override { return input.size(0); }
  tutti::SampleSpec spec() const override { return {{{"input", {64}}, {"target", {}}}, 10}; }
  tutti::Batch get(std::span<const int64_t> indices) const override {
    const at::Tensor rows = at::tensor(at::IntArrayRef(indices.data(), indices.size()), at::kLong);
    return tutti::TensorTree::Children{{"input", input.index_select(0, rows)},
                                       {"target", target.index_select(0, rows)}};
  }
  uint64_t digest() const override { return static_cast<uint64_t>(size()); }
  at::Tensor input, target;
};

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
       .data = {{"train", std::make_shared<Digits>(file, "train")},
                {"eval", std::make_shared<Digits>(file, "test")}},
       .listeners = [](int) { return tutti::Engine::Options{.callbacks = {std::make_shared<Printer>()}}; }});
  return trainer.fit();
}
