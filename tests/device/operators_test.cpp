#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cmath>
#include <functional>
#include <vector>

#include "tensors/autograd.h"
#include "tensors/fused/cross_entropy.h"
#include "tensors/fused/layer_norm.h"
#include "tests/device/nets.h"
#include "tests/device/streams_for_tests.h"

namespace tutti::test_device {
namespace {

using at::Tensor;
using testing::Contains;
using testing::IsEmpty;
using testing::Key;
using testing::Pair;

class Operators : public DeviceTest {};
TUTTI_IN_BOTH_MODES(Operators);

// What `f` gives on the device and on the CPU, from the same numbers.
void expect_cpus(const std::function<Tensor(const Tensor&)>& f, const char* what) {
  const Tensor x = at::arange(24, at::kFloat).view({2, 3, 4}) - 11;
  const Tensor expected = f(x), result = f(x.to(device()));
  EXPECT_EQ(result.device(), device()) << what;
  EXPECT_EQ(result.strides(), expected.strides()) << what;
  EXPECT_TRUE(result.cpu().equal(expected)) << what;
}

TEST_P(Operators, KeepValuesAndStrides) {
  expect_cpus([](const Tensor& x) { return x.transpose(0, 2) * 2; }, "a transposed product");
  expect_cpus([](const Tensor& x) { return x.unfold(2, 2, 1).sum(-1); }, "unfold");
  expect_cpus([](const Tensor& x) { return std::get<0>(x.sort(-1, true)); }, "sort");
  expect_cpus([](const Tensor& x) { return x.flip({0}).roll(1, 1).tril(); }, "flip, roll, tril");
  expect_cpus([](const Tensor& x) { return at::stack(x.split(1, 1), 0).contiguous(); }, "split and stack");
  expect_cpus([](const Tensor& x) { return at::_foreach_norm({x, x * 2})[1]; }, "foreach");
  expect_cpus([](const Tensor& x) { return x.to(at::kBFloat16).to(at::kFloat); }, "casts");
  expect_cpus([](const Tensor& x) { return at::masked_select(x, x > 3); }, "masked_select");
  expect_cpus([](const Tensor& x) { return at::group_norm(x.view({2, 3, 4}), 3); }, "group_norm");
  expect_cpus([](const Tensor& x) { return at::where(x > 0, x, at::zeros_like(x)).cumsum(1); }, "where");
  expect_cpus([](const Tensor& x) { return x.clone().index_put_({x > 3}, x.new_zeros({})); }, "index_put_");
  expect_cpus([](const Tensor& x) { return x.to(c10::MemoryFormat::Contiguous).view({4, 6}).t(); }, "views");
  expect_cpus([](const Tensor& x) { return at::mse_loss(x, x * 2); }, "mse_loss");
  expect_cpus([](const Tensor& x) { return at::smooth_l1_loss(x, x * 2); }, "smooth_l1_loss");
  expect_cpus([](const Tensor& x) { return at::huber_loss(x, x * 2); }, "huber_loss");
  expect_cpus([](const Tensor& x) { return at::binary_cross_entropy_with_logits(x, x * 2); }, "bce");
  expect_cpus([](const Tensor& x) { return at::conv1d(x, x.narrow(2, 0, 3)); }, "conv1d");
}

// The device runs the CPU's kernel. Losses of models do not use it here: their bits are to be the CPU's.
TEST_P(Operators, CrossEntropiesOfRowsHaveGradients) {
  at::manual_seed(2);
  const Tensor here = at::randn({4, 2000}), target = at::tensor({5L, 1999L, -100L, 0L});
  const auto gradient = [&](const Tensor& given, const Tensor& indices) {
    const Tensor scores = given.detach().requires_grad_();
    cross_entropy_of_rows(scores, indices, -100).sum().backward();
    return scores.grad().cpu();
  };
  EXPECT_TRUE(gradient(here.to(device()), target.to(device())).equal(gradient(here, target)));
  EXPECT_FALSE(has_cross_entropy_of_rows(here.to(device()), target.to(device())));
}

TEST_P(Operators, NarrowLayerNormsHaveGradients) {
  at::manual_seed(2);
  const Tensor here = at::randn({6, 8}), weight = at::randn({8}), bias = at::randn({8});
  const auto gradient = [&](const c10::Device& where) {
    const Tensor x = here.to(where).detach().requires_grad_(),
                 scale = weight.to(where).detach().requires_grad_();
    const AutocastScope autocast(at::kBFloat16, {where});
    EXPECT_FALSE(has_narrow_layer_norm(x, scale));
    narrow_layer_norm(x, scale, bias.to(where), 1e-5).to(at::kFloat).square().sum().backward();
    return at::cat({x.grad().cpu().flatten(), scale.grad().cpu()});
  };
  EXPECT_TRUE(gradient(device()).equal(gradient(at::kCPU)));
}

// libtorch's kernel gives the output more memory for a while.
TEST_P(Operators, OutputsThatMoveAreFollowed) {
  const Tensor x = at::arange(100, floats());
  Tensor out = at::full({}, 5.0, floats());
  at::mse_loss_out(out, x, x * 3);
  EXPECT_EQ(out.item<float>(), 13134);
}

TEST_P(Operators, SeveralOutputsMayBeLate) {
  const Tensor x = at::arange(100, floats());
  for (int i = 0; i < 20; ++i) {
    Tensor values = at::empty({5}, floats()), indices = at::empty({5}, floats().dtype(at::kLong));
    at::topk_out(values, indices, x, 5);
    EXPECT_EQ(values.sum().item<float>(), 99 + 98 + 97 + 96 + 95);
    EXPECT_EQ(indices.sum().item<int64_t>(), 99 + 98 + 97 + 96 + 95);
  }
}

TEST_P(Operators, ResultsInPlaceShareTheMemory) {
  const Tensor x = at::zeros({4, 4}, floats());
  x.view({16}).narrow(0, 2, 4).add_(1).mul_(3);
  x.t().select(0, 0).fill_(5);
  EXPECT_EQ(x.sum().item<float>(), 3 * 3 + 4 * 5);
}

TEST_P(Operators, StoragesMayBeSet) {
  const Tensor x = at::arange(6, floats());
  Tensor y = at::empty({0}, floats());
  y.set_(x.storage(), 2, {2, 2}, {2, 1});
  EXPECT_EQ(y.sum().item<float>(), 2 + 3 + 4 + 5);
  y.set_(x);
  EXPECT_TRUE(y.is_alias_of(x));
  EXPECT_EQ(y.sizes(), x.sizes());
  y.set_(x.storage());
  EXPECT_EQ(y.numel(), 6);
  y.set_();
  EXPECT_EQ(y.numel(), 0);
}

TEST_P(Operators, DrawsAreOfTheDevicesGeneratorAndAsTheCpus) {
  at::Generator own = at::globalContext().defaultGenerator(floats().device());
  own.set_current_seed(3);
  at::manual_seed(3);
  const Tensor x = at::randn({8}, floats()), y = at::zeros({8}, floats()).bernoulli_(0.5);
  EXPECT_TRUE(x.cpu().equal(at::randn({8})));
  EXPECT_TRUE(y.cpu().equal(at::zeros({8}).bernoulli_(0.5)));
}

TEST_P(Operators, SizesThatTheHostNeedsAreWaitedFor) {
  const Tensor x = at::arange(6, floats());
  const Tensor mask = x > 2, index = at::ones({2}, floats().dtype(at::kLong));
  reset_counters();
  x.index({index});
  EXPECT_THAT(host_waits(), IsEmpty());
  at::nonzero(mask);
  x.index({mask});
  at::equal(x, x);
  EXPECT_THAT(host_waits(), Contains(Pair("aten::nonzero", testing::Ge(1))));
  EXPECT_THAT(host_waits(), Contains(Pair("aten::equal", 1)));
}

TEST_P(Operators, FoundInfSkipsAStepWithoutAHostWait) {
  std::vector<Tensor> values{at::ones({4}, floats())}, gradients{at::full({4}, INFINITY, floats())};
  Tensor found = at::zeros({}, floats()), scale = at::ones({}, floats());
  reset_counters();
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, found, scale);
  at::_fused_sgd_(values, gradients, {}, 0, 0, 1.0, 0, false, false, true, {}, found);
  EXPECT_EQ(counters().host_waits, 0);
  EXPECT_EQ(found.item<float>(), 1);
  EXPECT_EQ(values[0].sum().item<float>(), 4);
}

class AutocastLists : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    for (const c10::DeviceType type : {c10::kCPU, c10::kPrivateUse1}) {
      at::autocast::set_autocast_dtype(type, at::kBFloat16);
      at::autocast::set_autocast_enabled(type, true);
    }
  }
  void TearDown() override {
    set_autocast(AutocastPolicy::kCpu);
    for (const c10::DeviceType type : {c10::kCPU, c10::kPrivateUse1})
      at::autocast::set_autocast_enabled(type, false);
    DeviceTest::TearDown();
  }
};
TUTTI_IN_BOTH_MODES(AutocastLists);

using OfTwo = std::function<Tensor(const Tensor&, const Tensor&)>;

std::vector<std::pair<const char*, OfTwo>> operations() {
  return {{"mm", [](auto& a, auto& b) { return at::mm(a, b); }},
          {"matmul", [](auto& a, auto& b) { return at::matmul(a, b); }},
          {"linear", [](auto& a, auto& b) { return at::linear(a, b); }},
          {"addmm", [](auto& a, auto& b) { return at::addmm(a, a, b); }},
          {"bmm", [](auto& a, auto& b) { return at::bmm(a.unsqueeze(0), b.unsqueeze(0)); }},
          {"prelu", [](auto& a, auto& b) { return at::prelu(a, b.view({-1}).narrow(0, 0, 1)); }},
          {"cat",
           [](auto& a, auto& b) {
             return at::cat({a, b});
           }},
          {"stack",
           [](auto& a, auto& b) {
             return at::stack({a, b});
           }},
          {"add", [](auto& a, auto& b) { return a + b; }},
          {"mse_loss", [](auto& a, auto& b) { return at::mse_loss(a, b); }},
          {"prod", [](auto& a, auto&) { return a.prod(); }},
          {"softmax", [](auto& a, auto&) { return a.softmax(0); }},
          {"sum", [](auto& a, auto&) { return a.sum(); }},
          {"layer_norm", [](auto& a, auto&) { return at::layer_norm(a, {4}); }},
          {"conv1d", [](auto& a, auto& b) { return at::conv1d(a.unsqueeze(0), b.unsqueeze(2)); }}};
}

TEST_P(AutocastLists, HasTheCpusDtypes) {
  for (const c10::ScalarType of_b : {at::kFloat, at::kBFloat16}) {
    for (const c10::ScalarType of_a : {at::kFloat, at::kBFloat16}) {
      const Tensor a = at::ones({4, 4}, of_a), b = at::ones({4, 4}, of_b);
      for (const auto& [name, operation] : operations()) {
        if (of_a != of_b && std::string(name) != "cat" && std::string(name) != "mm") continue;
        EXPECT_EQ(operation(a.to(device()), b.to(device())).scalar_type(), operation(a, b).scalar_type())
            << name;
      }
    }
  }
}

TEST_P(AutocastLists, KnowsTheOperatorsThatTheCpuKnows) {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findOp(name);
    if (!op) continue;
    EXPECT_EQ(op->hasKernelForDispatchKey(c10::DispatchKey::AutocastPrivateUse1),
              op->hasKernelForDispatchKey(c10::DispatchKey::AutocastCPU))
        << c10::toString(name);
  }
}

TEST_P(AutocastLists, CudasListsDiffer) {
  const Tensor x = at::ones({4, 4}, floats().dtype(at::kBFloat16));
  EXPECT_EQ(x.softmax(0).scalar_type(), at::kBFloat16);
  set_autocast(AutocastPolicy::kCuda);
  EXPECT_EQ(x.softmax(0).scalar_type(), at::kFloat);
  EXPECT_EQ(at::mm(x.to(at::kFloat), x).scalar_type(), at::kBFloat16);
}

TEST_P(AutocastLists, TrainsByCudasLists) {
  at::autocast::set_autocast_enabled(c10::kPrivateUse1, false);
  set_autocast(AutocastPolicy::kCuda);
  const auto results = train(device(), {Net::kGpt, 2, at::kBFloat16});
  const auto expected = train(at::kCPU, {Net::kGpt, 2});
  EXPECT_NEAR(results[1].item<float>(), expected[1].item<float>(), 0.05);
}

}  // namespace
}  // namespace tutti::test_device
