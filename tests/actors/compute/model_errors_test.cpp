#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "commands/local_train.h"
#include "models/layers/linear.h"
#include "models/model.h"
#include "tests/actors/sleeping_world.h"
#include "tests/runtime/scratch.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::EndsWith;
using testing::StartsWith;

// A model whose second pass in training has a mistake, in one of its functions.
enum class MistakeIn { kLayer, kForward, kLoss };

class Mistaken final : public Classifier {
 public:
  explicit Mistaken(MistakeIn where) : where_(where) {}
  TensorTree forward(const Batch& batch) override {
    passes_ += context().training;
    at::Tensor x = batch["input"];
    if (mistakes_in(MistakeIn::kLayer)) x = at::cat({x, x}, 1);
    if (mistakes_in(MistakeIn::kForward)) x = x.view({7, -1});
    return head_(x);
  }
  at::Tensor loss(const Outputs& outputs, const Batch& batch) override {
    if (mistakes_in(MistakeIn::kLoss)) std::map<int, int>().at(3);
    return Classifier::loss(outputs, batch);
  }
  const char* kind() const override { return "Mistaken"; }

 private:
  bool mistakes_in(MistakeIn where) const { return where == where_ && passes_ > 1 && context().training; }

  MistakeIn where_;
  int passes_ = 0;
  Slot& head_ = add_slot("head", std::make_shared<Linear>(3, 5));
};

std::string error_of_run(MistakeIn where) {
  const Scratch folder;
  LocalRunOptions options;
  options.ranks = 1;
  options.run_dir = folder.path("run");
  options.quiet = true;
  options.prepare = [where](Job& job) {
    job.make_model = [where](const Setting&, const SampleSpec&) { return std::make_shared<Mistaken>(where); };
  };
  try {
    train_in_one_process(recipe_of("[model]\nkind = 'mlp'\n[data.train]\nkind = 'synthetic'\nsamples = 12\n"
                                   "shape = [3]\nclasses = 5\nbatch_size = 4\n[optimizer]\nkind = 'sgd'\n"
                                   "lr = 0.5\n[train]\nmax_duration = '3ba'\n"),
                         options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no UserError";
}

TEST(ModelErrors, NameTheStepTheLayerAndTheShapes) {
  const std::string text = error_of_run(MistakeIn::kLayer);
  EXPECT_THAT(text, StartsWith("step 2, Compute: in head "));
  EXPECT_THAT(text,
              EndsWith(": in head (Linear 3 -> 5): mat1 and mat2 shapes cannot be multiplied (4x6 and 3x5)"));
}

TEST(ModelErrors, NameTheModelsOwnFunctions) {
  EXPECT_THAT(error_of_run(MistakeIn::kForward),
              EndsWith(": in Mistaken: shape '[7, -1]' is invalid for input of size 12"));
  EXPECT_THAT(
      error_of_run(MistakeIn::kLoss),
      EndsWith(": in the loss of Mistaken: a name or index is looked up that does not exist (map::at)"));
}

}  // namespace
}  // namespace tutti
