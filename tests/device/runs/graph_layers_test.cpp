// Layers as a plugin may have them, in microbatches that are graphs of the device: the bits of the CPU, by a
// graph or without one.

#include <ATen/ops/empty_like.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layers/activation.h"
#include "models/model.h"
#include "tests/actors/compute/hungry_model.h"
#include "tests/actors/memory_world.h"
#include "tests/device/runs/device_run.h"
#include "tests/device/test_device.h"

namespace tutti {
namespace {

using Forward = std::function<at::Tensor(const at::Tensor& x, const ForwardContext& context)>;

class LayerOf final : public Layer {
 public:
  explicit LayerOf(Forward forward) : forward_(std::move(forward)) {}
  TensorTree forward(const TensorTree& input) override { return forward_(input.tensor(), context()); }
  const char* kind() const override { return "LayerOf"; }

 private:
  Forward forward_;
};

// Makes the recipe's model with `forward` in place of dropout.
ModelFactory model_with(const Forward& forward) {
  return [forward](const Setting& section, const SampleSpec& samples) {
    std::shared_ptr<Model> model = make_model(section, samples);
    replace_layers(*model, [&](const NamedSlot& named) {
      const bool is_dropout = dynamic_cast<const Dropout*>(&named.slot->layer()) != nullptr;
      return is_dropout ? std::make_shared<LayerOf>(forward) : nullptr;
    });
    return model;
  };
}

class GraphsWithLayers : public DeviceRunTest {
 protected:
  // The number of launches in 6 steps.
  int64_t launches(const Forward& forward) {
    test_device::reset_counters();
    const DeviceRun run{kSmallGpt + steps(6) + "cuda_graphs = true\n", {"none", 1}, [&](Job& job) {
                          job.make_model = model_with(forward);
                        }};
    expect_bits_of_the_cpu(run);
    return test_device::counters().graphs;
  }
};

// By an operator that takes a generator: those that do not draw from the CPU's on the test device.
at::Tensor dropped(const at::Tensor& x, const ForwardContext& context) {
  return context.training ? x * at::empty_like(x).bernoulli_(0.7) : x;
}

TEST_F(GraphsWithLayers, DrawsOfTheDevicesGeneratorAreThoseOfTheSeed) { EXPECT_EQ(launches(dropped), 3); }

TEST_F(GraphsWithLayers, DrawsOfTheHostsGeneratorAreRefused) {
  const Forward scaled = [](const at::Tensor& x, const ForwardContext& context) {
    return context.training ? x * at::rand({}).item<double>() : x;
  };
  EXPECT_EQ(launches(scaled), 0);
}

TEST_F(GraphsWithLayers, DrawsOfAKeyAreRefused) {
  const Forward scaled = [](const at::Tensor& x, const ForwardContext& context) {
    return context.training ? x * make_draws(7, {"layer"})->uniform(0.5, 1.0) : x;
  };
  EXPECT_EQ(launches(scaled), 0);
}

TEST_F(GraphsWithLayers, DrawsBeforeARefusalAreDrawnAgain) {
  const Forward waiting = [](const at::Tensor& x, const ForwardContext& context) {
    const at::Tensor y = dropped(x, context);
    return context.training && y.sum().item<double>() > 1e9 ? x : y;
  };
  EXPECT_EQ(launches(waiting), 0);
}

// Surgery in the middle of the training, without parameters.
struct ReplaceActivations final : Algorithm {
  std::string name() const override { return "ReplaceActivations"; }
  bool match(Event event, const State& state) const override {
    return event == Event::kBatchEnd && state.timestamp.batch == 6;
  }
  void apply(Event, State& state, Logger&) override {
    replace_layers(*state.model, [](const NamedSlot& named) {
      const bool is_activation = std::string(named.slot->layer().kind()) == "ReLU";
      return is_activation ? std::make_shared<LayerOf>(
                                 [](const at::Tensor& x, const ForwardContext&) { return x.tanh(); })
                           : nullptr;
    });
  }
};

TEST_F(GraphsWithLayers, LayersMayBeReplaced) {
  test_device::reset_counters();
  expect_bits_of_the_cpu({kSmallMlp + steps(10) + "cuda_graphs = true\n", {"none", 1}, [](Job& job) {
                            job.listeners = [](int) {
                              return Engine::Options{.algorithms = {std::make_shared<ReplaceActivations>()}};
                            };
                          }});
  EXPECT_EQ(test_device::counters().graphs, 3 + 1);
}

TEST_F(GraphsWithLayers, RefusalsAreALine) {
  MemoryWorld world{.recipe = replaced(kSmallGpt + steps(5) + on(Where::kLate), "[train]\n",
                                       "[train]\ncuda_graphs = true\n"),
                    .ranks = 1};
  world.make_model = model_with([](const at::Tensor& x, const ForwardContext&) {
    return x.sum().item<double>() > 1e9 ? at::Tensor() : x;
  });
  const auto outcome = world.run("1");
  EXPECT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.warnings,
              testing::ElementsAre("train.cuda_graphs has no effect: in transformer.drop (LayerOf): "
                                   "aten::_local_scalar_dense is not permitted while a graph is recorded"));
}

TEST_F(GraphsWithLayers, ListenersThatPreventThemAreNamed) {
  MemoryWorld world{
      .recipe = replaced(kSmallMlp + steps(5) + on(Where::kLate), "[train]\n",
                         "[[algorithms]]\nkind = 'label_smoothing'\n[train]\ncuda_graphs = true\n"),
      .ranks = 1};
  const auto outcome = world.run("1");
  EXPECT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.warnings, testing::ElementsAre("train.cuda_graphs has no effect while LabelSmoothing "
                                                     "acts at before_loss"));
}

}  // namespace
}  // namespace tutti
