// The test of an algorithm of one's own: its function by a known answer, its class in whole runs, which must
// centralize every step's gradients and end in the same weights when they are resumed.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <own_algorithm.h>
#include <tutti/commands/trainer.h>
#include <tutti/tensors/param_view.h>

#include <filesystem>

using namespace tutti;

namespace {

constexpr const char* kRecipe = R"(
seed = 17

[model]
kind = "mlp"
hidden = [16]

[data.train]
kind = "synthetic"
samples = 64
shape = [8]
batch_size = 16

[optimizer]
kind = "sgd"
lr = 0.1
momentum = 0.9

[train]
max_duration = "3ep"
)";

// The run's state after the algorithm has acted: callbacks run after algorithms.
struct Watch final : Callback {
  std::string name() const override { return "Watch"; }
  void after_train_batch(State& state, Logger&) override {
    ++steps;
    for (const ParamView& view : state.views)
      if (view.grad.dim() == 2)
        largest_mean = std::max(largest_mean, view.grad.mean(1).abs().max().item<double>());
  }
  void fit_end(State& state, Logger&) override {
    for (const ParamView& view : state.views) weights.push_back(view.tensor.detach().clone());
  }

  int steps = 0;
  double largest_mean = 0.0;
  std::vector<at::Tensor> weights;
};

class GradientCentralizationTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::shared_ptr<Watch> trained(const std::string& run, bool centralized,
                                 const std::string& duration = "3ep", const std::string& resume = "") const {
    const auto watch = std::make_shared<Watch>();
    Engine::Options listeners{.callbacks = {watch}};
    if (centralized) listeners.algorithms = {std::make_shared<GradientCentralization>()};
    Trainer trainer({.recipe = kRecipe,
                     .overrides = {"train.max_duration=" + duration, "train.progress_bar=false"},
                     .run_dir = folder_ + "/" + run,
                     .resume = resume,
                     .listeners = [&](int) { return listeners; }});
    EXPECT_EQ(trainer.fit(), 0);
    return watch;
  }

  const std::string folder_ = testing::TempDir() + "gradient_centralization";
};

TEST_F(GradientCentralizationTest, TakesTheMeanOfEachRowOutOfAGradient) {
  ParamView weight = whole_view("weight", at::zeros({2, 3}));
  ParamView bias = whole_view("bias", at::zeros({2}));
  weight.grad = at::tensor({1.0, 2.0, 6.0, 0.0, 0.0, 3.0}).view({2, 3});
  bias.grad = at::tensor({1.0, 2.0});
  apply_gradient_centralization({weight, bias});
  EXPECT_TRUE(weight.grad.equal(at::tensor({-2.0, -1.0, 3.0, -1.0, -1.0, 2.0}).view({2, 3})));
  EXPECT_TRUE(bias.grad.equal(at::tensor({1.0, 2.0})));
}

TEST_F(GradientCentralizationTest, ActsInEveryStep) {
  const auto with = trained("with", true), without = trained("without", false);
  EXPECT_EQ(with->steps, 12);
  EXPECT_LT(with->largest_mean, 1e-6);
  EXPECT_GT(without->largest_mean, 1e-4);
  EXPECT_FALSE(with->weights[0].equal(without->weights[0]));
}

TEST_F(GradientCentralizationTest, AResumedRunEndsInTheSameWeights) {
  const auto whole = trained("whole", true);
  trained("parts", true, "1ep");
  const auto resumed = trained("parts", true, "3ep", "auto");
  EXPECT_EQ(resumed->steps, 8);
  for (std::size_t p = 0; p < whole->weights.size(); ++p)
    EXPECT_TRUE(whole->weights[p].equal(resumed->weights.at(p))) << p;
}

}  // namespace
