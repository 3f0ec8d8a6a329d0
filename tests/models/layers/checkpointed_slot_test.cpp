#include "models/layers/checkpointed_slot.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "models/layers/activation.h"
#include "models/layers/attention.h"
#include "models/layers/blocks.h"
#include "models/layers/conv.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/zoo/gpt.h"
#include "runtime/error.h"
#include "tensors/autograd.h"
#include "tensors/draws.h"
#include "tensors/memory/meter.h"
#include "tensors/process_state.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using Layers = std::vector<std::shared_ptr<Layer>>;

constexpr int kRank = 9;
constexpr int64_t kSample = 3;  // place in the global batch

// Of a pass of training.
struct Found {
  std::vector<at::Tensor> gradients;  // of the parameters, then of the input
  std::vector<at::Tensor> statistics;
  int64_t masks = 0;
  double next_random = 0;  // of the default generator, after backward
};

void expect_equal(const std::vector<at::Tensor>& some, const std::vector<at::Tensor>& others) {
  ASSERT_EQ(some.size(), others.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    ASSERT_EQ(some[i].defined(), others[i].defined()) << i;
    if (some[i].defined()) EXPECT_TRUE(some[i].equal(others[i])) << i;
  }
}

void expect_equal(const Found& some, const Found& other) {
  expect_equal(some.gradients, other.gradients);
  expect_equal(some.statistics, other.statistics);
  EXPECT_EQ(some.masks, other.masks);
  EXPECT_EQ(some.next_random, other.next_random);
}

std::vector<Slot::Hook> checkpoint(Layer& root, const std::vector<std::string>& names) {
  std::vector<Slot::Hook> hooks;
  for (const auto& [name, slot] : slots(root))
    if (std::ranges::find(names, name) != names.end()) hooks.push_back(checkpoint_activations(*slot, name));
  EXPECT_EQ(hooks.size(), names.size());
  return hooks;
}

// Weighs all outputs differently.
at::Tensor sum_of(const TensorTree& outputs) {
  at::Tensor sum = at::zeros({});
  for (const auto& [name, tensor] : outputs.leaves())
    if (tensor.is_floating_point())
      sum = sum + (tensor.to(at::kFloat) * at::linspace(-1, 2, tensor.numel()).view(tensor.sizes())).sum();
  return sum;
}

// Draws like a run's, keyed by name and place.
ForwardContext context_of(std::vector<RunningStatistics>& statistics) {
  ForwardContext context{.statistics = &statistics, .first_sample = kSample};
  context.source = [](std::string_view name, int64_t place) {
    return make_draws(5, {.name = name, .place = place});
  };
  return context;
}

Found train(Layer& root, const TensorTree& input, std::optional<at::ScalarType> autocast = std::nullopt) {
  std::vector<RunningStatistics> statistics;
  const ForwardContext context = context_of(statistics);
  const ContextScope scope(root, context);
  for (const auto& one : parameters(root)) one.parameter->tensor.mutable_grad() = at::Tensor();
  seed_default_generators(3);
  Found found;
  const TensorTree given = input.map([](const at::Tensor& tensor) {
    const at::Tensor fresh = tensor.clone();
    return fresh.is_floating_point() ? fresh.requires_grad_(true) : fresh;
  });
  at::Tensor loss;
  {
    const AutocastScope low(autocast);
    loss = sum_of(root.forward(given));
  }
  loss.backward();
  for (const auto& one : parameters(root)) found.gradients.push_back(one.parameter->tensor.grad());
  for (const auto& [name, leaf] : given.leaves()) found.gradients.push_back(leaf.grad());
  for (const RunningStatistics& one : statistics) found.statistics.push_back(one.numbers);
  found.masks = context.masks;
  found.next_random = at::rand({}, at::kDouble).item<double>();
  return found;
}

void expect_same_bits(Layer& root, const TensorTree& input, const std::vector<std::string>& names,
                      std::optional<at::ScalarType> autocast = std::nullopt) {
  const Found plain = train(root, input, autocast);
  const auto hooks = checkpoint(root, names);
  expect_equal(train(root, input, autocast), plain);
}

class Net final : public Layer {
 public:
  explicit Net(Layers layers) {
    for (std::size_t i = 0; i < layers.size(); ++i) add_slot(std::to_string(i), layers[i]);
    materialise(*this, 1);
  }
  TensorTree forward(const TensorTree& input) override {
    TensorTree x = input;
    for (const auto& slot : slots()) x = (*slot)(x);
    return x;
  }
  const char* kind() const override { return "Net"; }
};

at::Tensor numbers(at::IntArrayRef sizes) {
  seed_default_generators(11);
  return at::randn(sizes);
}

TEST(CheckpointedSlot, OfAttentionWithDropoutHasTheBitsOfOthers) {
  const CausalSelfAttention::Options options{.features = 12, .heads = 3, .dropout = 0.3};
  Net net({std::make_shared<GptBlock>(options), std::make_shared<GptBlock>(options),
           std::make_shared<GptBlock>(options)});
  const at::Tensor x = numbers({4, 5, 12});
  expect_same_bits(net, x, {"0", "1", "2"});
  expect_same_bits(net, x, {"1"});
  expect_same_bits(net, x, {"0.attn", "1.mlp", "2.ln_1"});
  expect_same_bits(net, x, {"0", "1", "2"}, at::kBFloat16);
}

TEST(CheckpointedSlot, MayHaveATreeOfTensors) {
  const BertSelfAttention::Options options{.features = 12, .heads = 3, .dropout = 0.3};
  Net net({std::make_shared<BertSelfAttention>(options)});
  const TensorTree::Children given{{"states", numbers({4, 5, 12})},
                                   {"mask", at::ones({4, 1, 1, 5}, at::kBool)}};
  expect_same_bits(net, TensorTree(given), {"0"});
}

TEST(CheckpointedSlot, FindsStatisticsOnce) {
  const auto convolution = [] {
    return std::make_shared<Conv2d>(Conv2dOptions{.in_channels = 3, .out_channels = 3, .kernel_size = 3});
  };
  Net net({convolution(), std::make_shared<BatchNorm2d>(BatchNormOptions{.channels = 3}),
           std::make_shared<ReLU>(true), convolution()});
  expect_same_bits(net, numbers({4, 3, 8, 8}), {"1"});
  Net chain({std::make_shared<Sequential>(
      Layers{convolution(), std::make_shared<BatchNorm2d>(BatchNormOptions{.channels = 3}),
             std::make_shared<ReLU>(true), convolution()})});
  expect_same_bits(chain, numbers({4, 3, 8, 8}), {"0"});
}

// Draws from the default generator.
class Noise final : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override {
    const at::Tensor& x = input.tensor();
    return (x * at::rand(x.sizes())).sin();
  }
  const char* kind() const override { return "Noise"; }
};

TEST(CheckpointedSlot, DrawsAgainFromTheDefaultGenerator) {
  Net net({std::make_shared<Noise>(), std::make_shared<Noise>()});
  expect_same_bits(net, numbers({4, 6}), {"0", "1"});
}

TEST(CheckpointedSlot, CallsItsLayerOnceMoreInBackward) {
  Net net({std::make_shared<Linear>(4, 4), std::make_shared<Tanh>()});
  std::string order;
  const Slot::Hook outer = net.slots()[0]->before([&](const TensorTree&) { order += "o"; });
  const auto hooks = checkpoint(net, {"0"});
  const Slot::Hook inner = net.slots()[0]->before([&](const TensorTree&) { order += "i"; });
  train(net, numbers({2, 4}));
  EXPECT_EQ(order, "oii");
  const at::NoGradGuard no_grad;
  net.forward(numbers({2, 4}));
  EXPECT_EQ(order, "oiioi");
}

TEST(CheckpointedSlot, WithinAnotherIsPartOfThat) {
  const auto chain =
      std::make_shared<Sequential>(Layers{std::make_shared<Linear>(4, 4), std::make_shared<Tanh>()});
  Net net({chain, std::make_shared<Linear>(4, 4)});
  int calls = 0;
  expect_same_bits(net, numbers({2, 4}), {"0", "0.0"});
  const auto hooks = checkpoint(net, {"0", "0.0"});
  const Slot::Hook count = chain->slots()[0]->before([&](const TensorTree&) { ++calls; });
  train(net, numbers({2, 4}));
  EXPECT_EQ(calls, 2);
}

TEST(CheckpointedSlot, OfATiedTableAddsItsGradientOnce) {
  Gpt gpt({.vocab_size = 20, .n_positions = 6, .n_embd = 12, .n_layer = 2, .n_head = 2, .dropout = 0.2});
  materialise(gpt, 1);
  const TensorTree::Children batch{{"input", at::arange(12).remainder(7).view({2, 6})}};
  const std::vector<std::string> all{"transformer.wte", "transformer.h.0", "transformer.h.1",
                                     "transformer.ln_f"};
  int times = 0;
  set_gradient_hook(parameters(gpt)[0].parameter->tensor, [&] { ++times; });
  expect_same_bits(gpt, TensorTree(batch), all);
  EXPECT_EQ(times, 2) << "once in each of two passes";
  expect_same_bits(gpt, TensorTree(batch), {"transformer"});
}

TEST(CheckpointedSlot, MayHaveAnInputWithoutGradient) {
  Net net({std::make_shared<Linear>(4, 4), std::make_shared<Linear>(4, 4), std::make_shared<Linear>(4, 4)});
  for (const auto& own : net.slots()[0]->layer().own_parameters()) own->tensor.requires_grad_(false);
  const auto gradients = [&] {
    for (const auto& one : parameters(net)) one.parameter->tensor.mutable_grad() = at::Tensor();
    sum_of(net.forward(numbers({2, 4}))).backward();
    std::vector<at::Tensor> found;
    for (const auto& one : parameters(net)) found.push_back(one.parameter->tensor.grad());
    return found;
  };
  const auto plain = gradients();
  const auto hooks = checkpoint(net, {"0", "1", "2"});
  expect_equal(gradients(), plain);
  EXPECT_FALSE(plain[0].defined());
  EXPECT_TRUE(plain[2].defined());
}

TEST(CheckpointedSlot, ServesASecondBackward) {
  Net net({std::make_shared<Linear>(4, 4), std::make_shared<Tanh>()});
  const auto hooks = checkpoint(net, {"0", "1"});
  const at::Tensor x = numbers({2, 4}).requires_grad_(true);
  const at::Tensor loss = sum_of(net.forward(x));
  loss.backward({}, /*retain_graph=*/true);
  const at::Tensor once = x.grad().clone();
  loss.backward();
  EXPECT_TRUE(x.grad().equal(once * 2));
}

// Remembers, and so is another layer when it is called again.
class Stateful final : public Layer {
 public:
  explicit Stateful(bool fewer) : fewer_(fewer) {}
  TensorTree forward(const TensorTree& input) override {
    const at::Tensor& x = input.tensor();
    if (calls_++ == 0) return x.sin().cos();
    return fewer_ ? x.sin() : x.narrow(0, 0, 1).sin().cos();
  }
  const char* kind() const override { return "Stateful"; }

 private:
  bool fewer_;
  int calls_ = 0;
};

TEST(CheckpointedSlot, RefusesALayerThatComputesSomethingElseTheSecondTime) {
  for (const bool fewer : {true, false}) {
    Net net({std::make_shared<Stateful>(fewer)});
    const auto hooks = checkpoint(net, {"0"});
    const std::string why = message_of<UserError>([&] { train(net, numbers({3, 4})); });
    EXPECT_THAT(why, HasSubstr("sharding.activation_checkpointing: '0'"));
    EXPECT_THAT(why, HasSubstr(fewer ? "fewer tensors" : "something else"));
  }
}

TEST(CheckpointedSlot, RefusesAnInputThatWasChangedInPlace) {
  Net net({std::make_shared<Linear>(4, 4), std::make_shared<ReLU>(true), std::make_shared<Linear>(4, 4)});
  const auto hooks = checkpoint(net, {"1"});
  EXPECT_THAT(message_of<UserError>([&] { train(net, numbers({3, 4})); }), HasSubstr("changed in place"));
}

class CheckpointedMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    Meter::install();
    Meter::set_owner(kRank);
  }
  void TearDown() override {
    Meter::fail_at(kRank, {});
    Meter::set_owner(0);
  }

  static std::unique_ptr<Net> tower() {
    Layers blocks;
    for (int i = 0; i < 12; ++i)
      blocks.push_back(std::make_shared<GptBlock>(
          CausalSelfAttention::Options{.features = 32, .heads = 4, .dropout = i % 2 ? 0.1 : 0.0}));
    return std::make_unique<Net>(std::move(blocks));
  }
  static std::vector<Slot::Hook> checkpoint_all(Net& net) {
    std::vector<Slot::Hook> hooks;
    for (const auto& slot : net.slots()) hooks.push_back(checkpoint_activations(*slot, slot->name()));
    return hooks;
  }
  static int64_t peak_of(Net& net, const at::Tensor& x) {
    train(net, x);  // gradients are there
    Meter::reset_peak(kRank);
    const int64_t before = Meter::used_bytes(kRank);
    train(net, x);
    return Meter::peak_bytes(kRank) - before;
  }
};

TEST_F(CheckpointedMemoryTest, HoldsTheActivationsOfOneLayer) {
  const auto net = tower();
  const at::Tensor x = numbers({8, 32, 32});
  const int64_t plain = peak_of(*net, x);
  const auto hooks = checkpoint_all(*net);
  EXPECT_LT(peak_of(*net, x), 0.25 * static_cast<double>(plain));
}

TEST_F(CheckpointedMemoryTest, LeavesNothingWhereverMemoryRunsOut) {
  const auto net = tower();
  const at::Tensor x = numbers({2, 8, 32});
  const Found plain = train(*net, x);
  AutogradSweep sweep;
  const auto hooks = checkpoint_all(*net);
  int64_t failures = 0;
  for (int64_t ordinal = 1;; ordinal += 13) {
    bool completed = false;
    {
      const MemoryScope scope(kRank);
      Meter::fail_at(kRank, {ordinal});
      try {
        train(*net, x);
        completed = true;
      } catch (const c10::OutOfMemoryError&) {
        ++failures;
      }
    }
    for (const auto& one : parameters(*net)) one.parameter->tensor.mutable_grad() = at::Tensor();
    sweep.run();
    ASSERT_EQ(Meter::scoped_bytes(kRank), 0) << "after a failure at allocation " << ordinal;
    if (completed) break;
  }
  EXPECT_GT(failures, 50);
  expect_equal(train(*net, x), plain);
}

}  // namespace
}  // namespace tutti
