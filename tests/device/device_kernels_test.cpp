// Models on a device that registers kernels of tutti's own operators, as CUDA does: here the CPU's.
#include <torch/library.h>

#include <map>

#include "models/layers/blocks.h"
#include "models/layers/checkpointed_slot.h"
#include "models/layers/norm.h"
#include "models/layers/statistics_rows.h"
#include "models/losses.h"
#include "models/zoo/gpt.h"
#include "tensors/autograd.h"
#include "tensors/fused/cross_entropy.h"
#include "tensors/fused/layer_norm.h"
#include "tests/device/fallback.h"
#include "tests/device/streams_for_tests.h"

namespace tutti::test_device {
namespace {

using at::Tensor;
using testing::Contains;
using testing::Key;
using testing::Not;
using testing::Pair;

class DeviceKernels : public DeviceTest {
 protected:
  DeviceKernels() {
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);  // as Device::use
    for (const char* name :
         {"cross_entropy_", "cross_entropy_gradients_", "layer_norm_", "layer_norm_gradients_"})
      library_.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback>());
  }

 private:
  torch::Library library_{torch::Library::IMPL, "tutti", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__};
};
TUTTI_IN_BOTH_MODES(DeviceKernels);

struct Losses {
  Tensor losses, gradient;
};

Losses cross_entropy(const Tensor& given, const Tensor& target, LossReduction reduction) {
  const Tensor scores = given.detach().requires_grad_();
  const Tensor losses = index_cross_entropy(scores, target, reduction);
  losses.sum().backward();
  return {losses.detach().cpu(), scores.grad().cpu()};
}

TEST_P(DeviceKernels, CrossEntropyOfManyClassesIsTorchsInEachReduction) {
  at::manual_seed(1);
  const Tensor scores = at::randn({5, 1501}) * 3, target = at::tensor({5L, 1500L, -100L, 0L, -100L});
  for (const auto reduction : {LossReduction::kMean, LossReduction::kSum, LossReduction::kNone}) {
    const Losses expected = cross_entropy(scores, target, reduction),
                 found = cross_entropy(scores.to(device()), target.to(device()), reduction);
    EXPECT_TRUE(at::allclose(found.losses, expected.losses, 1e-5, 1e-6)) << static_cast<int>(reduction);
    EXPECT_TRUE(at::allclose(found.gradient, expected.gradient, 1e-4, 1e-8)) << static_cast<int>(reduction);
  }
  EXPECT_THAT(kernels_seen(), Contains(Pair("tutti::cross_entropy_", 3)));
}

TEST_P(DeviceKernels, AMeanOverIgnoredTargetsAloneIsNoNumberAndHasNoGradient) {
  const Tensor scores = at::randn({3, 1200}).to(device()), target = at::full({3}, -100L).to(device());
  const Losses found = cross_entropy(scores, target, LossReduction::kMean);
  EXPECT_TRUE(found.losses.isnan().item<bool>());
  EXPECT_TRUE(found.gradient.eq(0).all().item<bool>());
}

TEST_P(DeviceKernels, OtherCrossEntropiesAreLeftToLibtorch) {
  const Tensor scores = at::zeros({4, 1024}, floats()), target = at::zeros({4}, floats().dtype(at::kLong));
  EXPECT_TRUE(has_cross_entropy_of_rows(scores, target));
  EXPECT_TRUE(has_cross_entropy_of_rows(scores.to(at::kHalf), target));
  EXPECT_FALSE(has_cross_entropy_of_rows(scores.narrow(1, 0, 1023), target));
  EXPECT_FALSE(has_cross_entropy_of_rows(scores.to(at::kDouble), target));
  EXPECT_FALSE(has_cross_entropy_of_rows(scores, target.to(at::kByte)));
  EXPECT_FALSE(has_cross_entropy_of_rows(scores, target.cpu()));
  EXPECT_FALSE(has_cross_entropy_of_rows(scores.narrow(0, 0, 0), target.narrow(0, 0, 0)));
  EXPECT_FALSE(has_cross_entropy_of_rows(scores, target.narrow(0, 0, 3)));
  EXPECT_ANY_THROW(index_cross_entropy(scores, target.narrow(0, 0, 3)));
  index_cross_entropy(scores, target, LossReduction::kMean, at::ones({1024}, floats()));
  EXPECT_THAT(kernels_seen(), Not(Contains(Key("tutti::cross_entropy_")))) << "has weights";
}

at::ScalarType normalised(const LayerNormOptions& options, const Tensor& x) {
  LayerNorm norm(options);
  materialise(norm, 1, {device()});
  return norm.forward(x).tensor().scalar_type();
}

TEST_P(DeviceKernels, NormsBeforeLinearLayersHaveTheBitsOfAutocast) {
  const Tensor x = at::randn({2, 3, 8}).to(device());
  const LayerNormOptions before_linear{.shape = {8}, .before_linear = true};
  EXPECT_EQ(normalised(before_linear, x), at::kFloat) << "without autocast";
  const AutocastScope autocast(at::kBFloat16, {device()});
  EXPECT_EQ(normalised(before_linear, x), at::kBFloat16);
  EXPECT_EQ(normalised({.shape = {8}}, x), at::kFloat) << "before other layers";
  EXPECT_EQ(normalised({.shape = {8}, .bias = false, .before_linear = true}, x), at::kFloat);
  EXPECT_EQ(normalised({.shape = {3, 8}, .before_linear = true}, x), at::kFloat);
  EXPECT_EQ(normalised({.shape = {6}, .before_linear = true}, x.narrow(2, 0, 6)), at::kFloat);
  EXPECT_FALSE(has_narrow_layer_norm(x, at::ones({4}, floats()))) << "of another size";
  EXPECT_FALSE(has_narrow_layer_norm(x, at::ones({8}, floats().dtype(at::kBFloat16))));
}

// The loss and the gradients by name.
std::map<std::string, Tensor> trained(const c10::Device& where, bool checkpoints) {
  Gpt gpt({.vocab_size = 1100, .n_positions = 8, .n_embd = 16, .n_layer = 2, .n_head = 2});
  materialise(gpt, 3, {where});
  std::vector<Slot::Hook> hooks;
  for (const NamedSlot& one : slots(gpt))
    if (checkpoints && dynamic_cast<GptBlock*>(&one.slot->layer()))
      hooks.push_back(checkpoint_activations(*one.slot, one.name));
  const Tensor tokens = (at::arange(18, at::kLong) * 61).view({2, 9});
  const Batch batch = TensorTree::Children{{"input", tokens.narrow(1, 0, 8).to(where)},
                                           {"target", tokens.narrow(1, 1, 8).to(where)}};
  std::map<std::string, Tensor> found;
  {
    const AutocastScope autocast(at::kBFloat16, {where});
    const Tensor loss = gpt.loss(gpt.forward(batch), batch);
    found["loss"] = loss.detach().cpu();
    loss.backward();
  }
  for (const NamedParameter& one : parameters(gpt)) found[one.name] = one.parameter->tensor.grad().cpu();
  return found;
}

TEST_P(DeviceKernels, GptHasTheGradientsOfLibtorchsKernels) {
  const auto expected = trained(at::kCPU, false), found = trained(device(), false),
             again = trained(device(), true);
  EXPECT_THAT(kernels_seen(), Contains(Pair("tutti::layer_norm_gradients_", 2 * 5)));
  for (const auto& [name, tensor] : expected) {
    EXPECT_LT((found.at(name) - tensor).norm().item<double>(), 5e-3 * tensor.norm().item<double>()) << name;
    EXPECT_TRUE(again.at(name).equal(found.at(name))) << name << ", activations checkpointed";
  }
}

// Running statistics of two norms with a momentum each, in two rows.
std::vector<Tensor> buffers_after(const c10::Device& where) {
  at::manual_seed(2);
  const auto first = std::make_shared<BatchNorm1d>(3),
             second = std::make_shared<BatchNorm1d>(BatchNormOptions{.channels = 3, .momentum = 0.3});
  Sequential model({first, second, std::make_shared<BatchNorm1d>(3)});
  materialise(model, 1, {where});
  const StatisticsRows rows(model);
  const Tensor numbers =
      at::empty({2 * rows.size()}, at::TensorOptions().pinned_memory(!where.is_cpu())).zero_();
  for (int64_t row = 0; row < 2; ++row)
    for (const auto& layer : {first, second}) {
      const Tensor found = at::cat({at::randn({6}), at::full({1}, layer == first ? 0.1 : 0.3)});
      rows.add({{layer.get(), found}}, numbers, row);
    }
  rows.apply(numbers, {where});
  std::vector<Tensor> after;
  for (const NamedBuffer& one : buffers(model)) after.push_back(one.buffer->tensor.cpu());
  return after;
}

TEST_P(DeviceKernels, RunningStatisticsChangeBuffersAsOnTheCpu) {
  const auto expected = buffers_after(at::kCPU), found = buffers_after(device());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(found[i].equal(expected[i])) << i;
}

}  // namespace
}  // namespace tutti::test_device
