#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "commands/inspect.h"
#include "commands/local_train.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "models/model.h"
#include "tests/actors/memory_world.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "training/state.h"

namespace tutti {
namespace {

std::string precision_recipe(const std::string& train, const std::string& precision = "",
                             const std::string& model = "kind = 'mlp'\nhidden = [16]\n",
                             const std::string& shape = "[6]") {
  return "seed = 5\n[model]\n" + model + "[data.train]\nkind = 'synthetic'\nsamples = 96\nshape = " + shape +
         "\nbatch_size = 24\n[data.eval]\nkind = 'synthetic'\nsamples = 24\nshape = " + shape +
         "\nbatch_size = 24\n[optimizer]\nkind = 'sgd'\nlr = 0.05\nmomentum = 0.9\n[precision]\n" +
         precision + "[train]\n" + train;
}

struct Outcome {
  std::map<std::string, at::Tensor> tensors;  // of the last checkpoint
  RunState state;
  std::string metrics;
};

Outcome train(const std::string& text, int ranks, const Scratch& folder, const std::string& run = "run",
              const std::function<void(Job&)>& prepare = {}) {
  LocalRunOptions options;
  options.ranks = ranks;
  options.run_dir = folder.path(run);
  options.resume = "auto";
  options.quiet = true;
  options.prepare = prepare;
  train_in_one_process(recipe_of(text), options);
  PosixDisk disk;
  const WholeCheckpoint last = newest_checkpoint(folder.path(run));
  return {last.tensors, RunState::from_json(last.state), read_text(folder.path(run) + "/metrics.jsonl")};
}

Outcome train(const std::string& text, int ranks, const std::function<void(Job&)>& prepare = {}) {
  const Scratch folder;
  return train(text, ranks, folder, "run", prepare);
}

// The largest difference of any weight, over the largest weight.
double distance(const Outcome& one, const Outcome& other) {
  double most = 0, size = 0;
  for (const auto& [name, tensor] : one.tensors) {
    if (!name.starts_with("model/") || !tensor.is_floating_point()) continue;
    const at::Tensor a = tensor.to(at::kDouble), b = other.tensors.at(name).to(at::kDouble);
    most = std::max(most, (a - b).abs().max().item<double>());
    size = std::max(size, a.abs().max().item<double>());
  }
  return most / size;
}

class Amp : public testing::TestWithParam<std::string> {};

TEST_P(Amp, TrainsNearlyAsFloat32Does) {
  const Outcome exact = train(precision_recipe("max_duration = '3ep'\n"), 2);
  const Outcome amp = train(precision_recipe("max_duration = '3ep'\nprecision = '" + GetParam() + "'\n"), 2);
  EXPECT_GT(distance(exact, amp), 1e-6);
  EXPECT_LT(distance(exact, amp), 0.02);
  for (const auto& [name, tensor] : amp.tensors) {
    if (name.starts_with("model/")) {
      EXPECT_EQ(tensor.scalar_type(), at::kFloat) << name;
    }
  }
}

TEST_P(Amp, OneRankAndOneMicrobatchComeToTheSameAsMany) {
  const std::string same = "max_duration = '2ep'\nprecision = '" + GetParam() + "'\n";
  const Outcome whole = train(precision_recipe(same), 1);
  for (const auto& [ranks, parts] : std::vector<std::pair<int, int>>{{1, 3}, {2, 1}, {3, 5}}) {
    const Outcome cut = train(precision_recipe(same + "grad_accum = " + std::to_string(parts) + "\n"), ranks);
    EXPECT_LT(distance(whole, cut), 0.01) << ranks << " ranks x " << parts;
  }
}

TEST_P(Amp, ConvolutionsNormalisationAndAttentionTrainToo) {
  const std::string same = "max_duration = '2ba'\nprecision = '" + GetParam() + "'\n";
  const std::string no_step_overflows = "init_scale = 16\n", net = "kind = 'resnet_cifar'\nwidth = 4\n";
  EXPECT_LT(distance(train(precision_recipe("max_duration = '2ba'\n", "", net, "[3, 8, 8]"), 2),
                     train(precision_recipe(same, no_step_overflows, net, "[3, 8, 8]"), 2)),
            0.05);
  const std::string gpt =
      "kind = 'gpt'\nn_layer = 1\nn_head = 2\nn_embd = 8\nn_positions = 8\ndropout = 0.1\n";
  const std::string words = "[8]\ntargets = 'sequence'";
  EXPECT_LT(distance(train(precision_recipe("max_duration = '2ba'\n", "", gpt, words), 2),
                     train(precision_recipe(same, no_step_overflows, gpt, words), 2)),
            0.05);
}

INSTANTIATE_TEST_SUITE_P(Precision, Amp, testing::Values("amp_bf16", "amp_fp16"),
                         [](const auto& info) { return info.param; });

// Notes what its products are in.
class Noting final : public Model {
 public:
  struct Notes {
    std::set<std::string> training, evaluation;
  };
  explicit Noting(Notes& notes)
      : notes_(notes),
        weight_(add_parameter("weight", {2, 6}, [](at::Tensor& t, at::Generator) { t.fill_(0.1); })) {}
  TensorTree forward(const Batch& batch) override {
    at::Tensor scores = at::linear(batch["input"], weight_.tensor);
    (context().training ? notes_.training : notes_.evaluation).insert(c10::toString(scores.scalar_type()));
    return scores;
  }
  at::Tensor loss(const Outputs& outputs, const Batch&) override { return outputs.tensor().square().mean(); }
  std::vector<std::string> get_metrics(bool) const override { return {"MulticlassAccuracy"}; }
  const char* kind() const override { return "Noting"; }

 private:
  Notes& notes_;
  Parameter& weight_;
};

TEST(PrecisionTest, EvaluationComputesAsTrainingDoes) {
  for (const auto& [precision, dtype] : std::map<std::string, std::string>{
           {"fp32", "Float"}, {"amp", "Half"}, {"amp_fp16", "Half"}, {"amp_bf16", "BFloat16"}}) {
    Noting::Notes notes;
    train(precision_recipe("max_duration = '2ba'\nprecision = '" + precision + "'\n"), 2, [&](Job& job) {
      job.make_model = [&](const Setting&, const SampleSpec&) { return std::make_shared<Noting>(notes); };
    });
    EXPECT_EQ(notes.training, std::set<std::string>{dtype});
    EXPECT_EQ(notes.evaluation, std::set<std::string>{dtype});
  }
}

TEST(PrecisionTest, ParametersReductionAndBuffersAreSetApart) {
  const std::string model = "kind = 'resnet_cifar'\nwidth = 4\n", shape = "[3, 8, 8]";
  const std::string amp = "max_duration = '3ba'\nprecision = 'amp_bf16'\ngrad_accum = 2\n";
  const Outcome plain = train(precision_recipe(amp, "", model, shape), 2);
  const Outcome reduced = train(precision_recipe(amp, "reduce_dtype = 'bf16'\n", model, shape), 2);
  EXPECT_GT(distance(plain, reduced), 0);
  EXPECT_LT(distance(plain, reduced), 0.02);
  const Outcome low = train(precision_recipe(amp, "param_dtype = 'bf16'\n", model, shape), 2);
  EXPECT_LT(distance(plain, low), 0.05);
  EXPECT_EQ(low.tensors.at("model/conv1.weight").scalar_type(), at::kBFloat16);
  EXPECT_EQ(low.tensors.at("optimizers/conv1.weight/momentum_buffer").scalar_type(), at::kBFloat16);
  EXPECT_EQ(low.tensors.at("model/bn1.running_mean").scalar_type(), at::kFloat);
  // Of two ranks there is one addition, which is rounded once in either.
  const Outcome of_three = train(precision_recipe(amp, "param_dtype = 'bf16'\n", model, shape), 3);
  const Outcome wide =
      train(precision_recipe(amp, "param_dtype = 'bf16'\nreduce_dtype = 'fp32'\n", model, shape), 3);
  EXPECT_GT(distance(of_three, wide), 0);
  EXPECT_LT(distance(of_three, wide), 0.05);
  const Outcome buffers = train(precision_recipe(amp, "buffer_dtype = 'bf16'\n", model, shape), 2);
  EXPECT_EQ(buffers.tensors.at("model/bn1.running_mean").scalar_type(), at::kBFloat16);
}

// They are tried at the start, as they will be measured.
TEST(PrecisionTest, MetricsThatAreNamedMeasureParametersOf16Bits) {
  std::string recipe =
      precision_recipe("max_duration = '1ba'\nprecision = 'amp_bf16'\n", "param_dtype = 'bf16'\n");
  recipe.insert(recipe.find("[optimizer]"), "metric_names = ['MulticlassAccuracy']\n");
  EXPECT_THAT(train(recipe, 2).metrics, testing::HasSubstr("metrics/eval/MulticlassAccuracy"));
}

// ---- the gradient scaler

constexpr const char* kStep = "optimizers/0.weight/step";

TEST(PrecisionTest, AScaleThatOverflowsCostsStepsUntilItFits) {
  const std::string wild = "init_scale = 1e12\n", few = "precision = 'amp_fp16'\nmax_duration = ";
  const Outcome first = train(precision_recipe(few + "'1ba'\n", wild), 2);
  EXPECT_EQ(first.state.grad_scaler.scale, static_cast<float>(1e12) / 2);
  EXPECT_EQ(first.tensors.at(kStep).item<int64_t>(), 0) << "the step was taken";
  const Outcome later = train(precision_recipe(few + "'60ba'\n", wild), 2);
  EXPECT_GT(later.tensors.at(kStep).item<int64_t>(), 20);
  EXPECT_LT(later.state.grad_scaler.scale, 1e8);
  EXPECT_GT(later.state.grad_scaler.growth_tracker, 0);
}

// No rank steps alone: the scale that one rank's samples overflow with is everybody's.
TEST(PrecisionTest, AnOverflowOnOneRankSkipsTheStepOfAll) {
  class Steep final : public Callback {
   public:
    explicit Steep(int rank) : rank_(rank) {}
    std::string name() const override { return "Steep"; }
    void after_loss(State& state, Logger&) override {
      if (rank_ == 1 && state.timestamp.batch == 2) state.loss = state.loss * 1e30;
    }

   private:
    int rank_;
  };
  MemoryWorld world{.recipe = precision_recipe("precision = 'amp_fp16'\nmax_duration = '6ba'\n")};
  std::vector<int64_t> steps;
  std::vector<double> scales;
  world.listeners = [&](int rank) {
    class After final : public Callback {
     public:
      After(std::vector<int64_t>& steps, std::vector<double>& scales) : steps_(steps), scales_(scales) {}
      std::string name() const override { return "After"; }
      void batch_end(State& state, Logger&) override {
        steps_.push_back(state.optimizer->steps());
        scales_.push_back(state.loss_scale);
      }

     private:
      std::vector<int64_t>& steps_;
      std::vector<double>& scales_;
    };
    Engine::Options options;
    options.callbacks = {std::make_shared<Steep>(rank)};
    if (rank == 0) options.callbacks.push_back(std::make_shared<After>(steps, scales));
    return options;
  };
  const auto outcome = world.run("1");
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 2, 2, 3, 4, 5}));
  for (std::size_t step = 0; step < 6; ++step)
    EXPECT_EQ(scales[step], step <= 2 ? scales[0] : scales[0] / 2) << step;
  EXPECT_FALSE(outcome.has_warning("finite")) << "a scale that is too large is nothing to warn of";
}

TEST(PrecisionTest, TheScaleResumesFromTheCheckpoint) {
  const auto until = [](const std::string& steps) {
    return precision_recipe(
               "precision = 'amp_fp16'\nmax_duration = '" + steps + "ba'\neval_interval = '0ba'\n",
               "init_scale = 1e9\ngrowth_interval = 3\n") +
           "[scheduler]\nkind = 'constant'\n";
  };
  const Scratch folder;
  const Outcome whole = train(until("20"), 2, folder, "whole");
  Outcome parts;
  for (const char* steps : {"1", "2", "11", "13", "20"}) parts = train(until(steps), 2, folder, "parts");
  EXPECT_EQ(parts.state.grad_scaler, whole.state.grad_scaler);
  EXPECT_EQ(inspect_digest(folder.path("parts")), inspect_digest(folder.path("whole")));
}

TEST(PrecisionTest, WithoutFloat16NothingIsScaled) {
  EXPECT_EQ(train(precision_recipe("precision = 'amp_bf16'\nmax_duration = '1ba'\n"), 1).state.grad_scaler,
            GradScalerState());
}

}  // namespace
}  // namespace tutti
