// Trains with a custom model, dataset and callback: train_digits [RECIPE [DATA]]
#include <ATen/ATen.h>
#include <tutti/commands/trainer.h>
#include <tutti/data/readers/synthetic_dataset.h>
#include <tutti/io/hdf5/hdf5.h>
#include <tutti/models/layers/linear.h>
#include <tutti/models/model.h>
#include <tutti/training/state.h>

#include <cstdio>

using namespace tutti;

struct Net final : Classifier {
  Slot& first = add_slot("first", std::make_shared<Linear>(64, 32));
  Slot& last = add_slot("last", std::make_shared<Linear>(32, 10));
  TensorTree forward(const Batch& batch) override { return last(first(batch["input"]).tanh()); }
  const char* kind() const override { return "Net"; }
};

struct Printer final : Callback {
  std::string name() const override { return "Printer"; }
  void epoch_end(State& state, Logger&) override {
    if (state.topology.rank == 0)
      std::printf("epoch %ld: loss %.4f\n", state.timestamp.epoch, state.train_loss);
  }
};

DatasetPtr digits(const Hdf5File& file, const std::string& group) {
  const at::Tensor input = file.read(group + "/input").to(at::kFloat).flatten(1);
  const at::Tensor target = file.read(group + "/target").to(at::kLong);
  return std::make_shared<TensorDataset>(TensorTree::Children{{"input", input}, {"target", target}}, 10);
}

int train(int argc, char** argv) {
  const Hdf5File file(argc > 2 ? argv[2] : EXAMPLES "/data/digits.h5");
  Trainer trainer(
      {.recipe = argc > 1 ? argv[1] : EXAMPLES "/cpp/train_digits.toml",
       .model = [](const SampleSpec&) { return std::make_shared<Net>(); },
       .data = {{"train", digits(file, "train")}, {"eval", digits(file, "test")}},
       .listeners = [](int) { return Engine::Options{.callbacks = {std::make_shared<Printer>()}}; }});
  if (const int code = trainer.fit(); code != 0) return code;
  return trainer.fit({train_on("2ep")});  // resumes where the first call ended
}

int main(int argc, char** argv) {
  return run_program([=] { return train(argc, argv); });
}
