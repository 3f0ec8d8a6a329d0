#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>

#include "algorithms/loop/sam.h"
#include "commands/local_train.h"
#include "models/model.h"
#include "tests/actors/memory_world.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

constexpr int64_t kSamples = 24;
constexpr double kRate = 0.05, kRho = 0.3;

// Half the square of a projection: its gradient is X^T X w / n.
class Slope final : public Model {
 public:
  Slope() : weight_(add_parameter("weight", {6}, [](at::Tensor& t, at::Generator) { t.fill_(1.0); })) {}
  TensorTree forward(const Batch& batch) override { return batch["input"].matmul(weight_.tensor); }
  at::Tensor loss(const Outputs& outputs, const Batch&) override {
    return outputs.tensor().square().mean() / 2;
  }
  const char* kind() const override { return "Slope"; }
  const at::Tensor& weight() const { return weight_.tensor; }

 private:
  Parameter& weight_;
};

std::string recipe(int steps, const std::string& more = "") {
  return "seed = 5\n[model]\nkind = 'mlp'\n[data.train]\nkind = 'synthetic'\nsamples = 24\nbatch_size = 24\n"
         "shape = [6]\n[optimizer]\nkind = 'sgd'\nlr = 0.05\n[checkpoint]\ninterval = '0ba'\n[train]\n"
         "max_duration = '" +
         std::to_string(steps) + "ba'\n" + more;
}

Listeners algorithm(const std::function<std::shared_ptr<Algorithm>()>& make) {
  return [make](int) {
    Engine::Options options;
    options.algorithms = {make()};
    return options;
  };
}

Listeners second_pass(double rho, int interval = 1) {
  return algorithm([=] { return std::make_shared<SAM>(SAMOptions{.rho = rho, .interval = interval}); });
}

struct Slid {
  at::Tensor data;    // [samples, 6]
  at::Tensor weight;  // in the end
};

Slid slide(const std::string& text, int ranks, const Listeners& listeners) {
  const Scratch folder;
  Slid slid;
  std::vector<std::shared_ptr<Slope>> models;
  LocalRunOptions options;
  options.ranks = ranks;
  options.run_dir = folder.path("run");
  options.quiet = true;
  options.prepare = [&](Job& job) {
    job.listeners = listeners;
    std::vector<int64_t> all(kSamples);
    std::iota(all.begin(), all.end(), 0);
    slid.data = job.train->get(all, {})["input"].to(at::kDouble);
    job.make_model = [&](const Setting&, const SampleSpec&) {
      models.push_back(std::make_shared<Slope>());
      return models.back();
    };
  };
  train_in_one_process(recipe_of(text), options);
  for (const auto& model : models) EXPECT_TRUE(at::equal(model->weight(), models[0]->weight()));
  slid.weight = models[0]->weight().detach();
  return slid;
}

at::Tensor by_hand(const at::Tensor& data, int steps, double rho, int interval = 1) {
  const at::Tensor curvature = data.t().matmul(data) / kSamples;
  at::Tensor weight = at::ones({6}, at::kDouble);
  for (int step = 1; step <= steps; ++step) {
    at::Tensor gradient = curvature.matmul(weight);
    if (step % interval == 0)
      gradient = curvature.matmul(weight + gradient * (rho / gradient.norm().item<double>()));
    weight = weight - kRate * gradient;
  }
  return weight;
}

TEST(ClosureTest, TwoPassesComeToWhatIsComputedByHand) {
  for (const int ranks : {1, 2}) {
    for (const int parts : {1, 3}) {
      const Slid slid =
          slide(recipe(5, "grad_accum = " + std::to_string(parts) + "\n"), ranks, second_pass(kRho));
      EXPECT_TRUE(at::allclose(slid.weight.to(at::kDouble), by_hand(slid.data, 5, kRho), 1e-5, 1e-6))
          << ranks << " ranks x " << parts;
    }
  }
  const Slid plain = slide(recipe(5), 2, {});
  EXPECT_FALSE(at::allclose(plain.weight.to(at::kDouble), by_hand(plain.data, 5, kRho), 1e-3, 1e-3));
}

TEST(ClosureTest, APassMayBeHadOnSomeStepsOnly) {
  const Slid slid = slide(recipe(5), 2, second_pass(kRho, 2));
  EXPECT_TRUE(at::allclose(slid.weight.to(at::kDouble), by_hand(slid.data, 5, kRho, 2), 1e-5, 1e-6));
}

// An optimizer of its own kind asks for the pass itself.
class Climbing final : public Optimizer {
 public:
  explicit Climbing(State& state) : Optimizer(state.views, {kRate, 0.0, {}}), state_(state) {}
  const char* name() const override { return "Climbing"; }
  void step(Closure& closure) override {
    closure.pass([&] {
      const at::Tensor& gradient = state_.views[0].grad;
      state_.views[0].tensor.add_(gradient, kRho / gradient.norm().item<double>());
    });
    closure.step();
  }

 private:
  void update(Call call, const at::Tensor& grad_scale) override {
    call.tensors[0].add_(call.grads[0] / grad_scale, -lr());
  }
  State& state_;
};

TEST(ClosureTest, AnOptimizerMayAskForPassesItself) {
  class Installing final : public Algorithm {
   public:
    std::string name() const override { return "Installing"; }
    bool match(Event event, const State&) const override { return event == Event::kBeforeLoad; }
    void apply(Event, State& state, Logger&) override { state.optimizer = std::make_unique<Climbing>(state); }
  };
  const Slid slid = slide(recipe(4), 2, algorithm([] { return std::make_shared<Installing>(); }));
  EXPECT_TRUE(at::allclose(slid.weight.to(at::kDouble), by_hand(slid.data, 4, kRho), 1e-5, 1e-6));
}

// Both passes run the same function: the same dropout, the same batch.
TEST(ClosureTest, APassThatGoesNowhereChangesNothing) {
  const std::string gpt =
      "seed = 5\n[model]\nkind = 'gpt'\nn_layer = 1\nn_head = 2\nn_embd = 8\nn_positions = 8\ndropout = 0.3\n"
      "[data.train]\nkind = 'synthetic'\nsamples = 24\nbatch_size = 8\nshape = [8]\ntargets = 'sequence'\n"
      "[optimizer]\nkind = 'adamw'\n[train]\nmax_duration = '3ba'\n";
  for (const int ranks : {1, 2}) {
    MemoryWorld world{.recipe = gpt, .ranks = ranks};
    const auto plain = world.run("2");
    world.listeners = second_pass(0.0);
    const auto twice = world.run("2");
    EXPECT_EQ(twice.error, "");
    EXPECT_EQ(twice.losses, plain.losses);
    EXPECT_TRUE(twice.weights == plain.weights);
  }
}

// The reported loss is the first pass's, of the weights as they are.
TEST(ClosureTest, TheLossOfAStepIsItsFirstPasses) {
  MemoryWorld world{.recipe = recipe(1)};
  const auto plain = world.run("1");
  world.listeners = second_pass(5.0);
  EXPECT_EQ(world.run("1").losses, plain.losses);
}

TEST(ClosureTest, RunningStatisticsAreOfEveryPass) {
  const std::string resnet =
      "seed = 5\n[model]\nkind = 'resnet_cifar'\nwidth = 4\n[data.train]\nkind = 'synthetic'\nsamples = 24\n"
      "batch_size = 12\nshape = [3, 8, 8]\n[optimizer]\nkind = 'sgd'\n[train]\nmax_duration = '1ba'\n";
  MemoryWorld world{.recipe = resnet};
  world.listeners = [&](int rank) {
    class Counting final : public Callback {
     public:
      std::string name() const override { return "Counting"; }
      void batch_end(State& state, Logger&) override {
        for (const auto& one : state.buffers) {
          if (one.name != "bn1.num_batches_tracked") continue;
          EXPECT_EQ(one.buffer->tensor.item<int64_t>(), 2 * 2 * 3);
        }
      }
    };
    Engine::Options options = second_pass(0.05)(rank);
    options.callbacks = {std::make_shared<Counting>()};
    return options;
  };
  EXPECT_EQ(world.run("3").error, "");
}

// In float16 a slope that steep overflows; the weights must be what they were.
TEST(ClosureTest, AnOverflowInThePassLeavesTheWeightsAlone) {
  MemoryWorld world{.recipe = recipe(2, "precision = 'amp_fp16'\n")};
  std::vector<double> scales;
  world.listeners = [&](int rank) {
    class Watching final : public Callback {
     public:
      explicit Watching(std::vector<double>& scales) : scales_(scales) {}
      std::string name() const override { return "Watching"; }
      void fit_start(State& state, Logger&) override {
        for (const auto& view : state.views) first_.push_back(view.tensor.detach().clone());
      }
      void batch_end(State& state, Logger&) override {
        for (std::size_t p = 0; p < first_.size(); ++p)
          EXPECT_TRUE(at::equal(state.views[p].tensor, first_[p])) << state.views[p].name;
        EXPECT_EQ(state.optimizer->steps(), 0);
        scales_.push_back(state.loss_scale);
      }

     private:
      std::vector<at::Tensor> first_;
      std::vector<double>& scales_;
    };
    Engine::Options options = second_pass(1e30)(rank);
    if (rank == 0) options.callbacks = {std::make_shared<Watching>(scales)};
    return options;
  };
  EXPECT_EQ(world.run("1").error, "");
  ASSERT_EQ(scales.size(), 2u);
  EXPECT_EQ(scales[1], scales[0] / 2);
}

}  // namespace
}  // namespace tutti
