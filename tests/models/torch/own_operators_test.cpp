#include "models/torch/own_operators.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/alpha_dropout.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "models/torch/known_operators.h"
#include "tensors/process_state.h"

namespace tutti {
namespace {

class Code final : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override { return input; }
  const char* kind() const override { return "Code"; }
};

bool says_mode(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(), [](const c10::Argument& argument) {
    return argument.name() == "train" || argument.name() == "training";
  });
}

// A program that was exported in training says so of all its operators, and is evaluated too.
TEST(OwnOperators, AreAllKnownOperatorsThatSayTheirMode) {
  Code code;
  const Norms none;
  const OwnOperators operators(code, none);
  auto& dispatcher = c10::Dispatcher::singleton();
  int count = 0;
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op || !is_known_operator(name.name) || !says_mode(op->schema())) continue;
    ++count;
    EXPECT_TRUE(op->hasKernelForDispatchKey(c10::DispatchKey::TESTING_ONLY_GenericMode)) << name;
  }
  EXPECT_GT(count, 10);
}

TEST(OwnOperators, DropInPlaceIntoTheirInput) {
  Code code;
  const Norms none;
  const OwnOperators operators(code, none);
  at::Tensor x = at::ones({8, 16});
  at::dropout_(x, 0.5, /*train=*/true);
  const int64_t dropped = x.eq(0).sum().item<int64_t>();
  EXPECT_GT(dropped, 0);
  EXPECT_EQ(x.eq(2).sum().item<int64_t>() + dropped, 128);
}

// Numbers of operators that call bernoulli_, after the same seed: within a pass, and without.
bool are_libtorchs_numbers(bool direct) {
  Code code;
  const Norms none;
  const auto numbers = [] {
    seed_default_generators(3);
    const at::Tensor x = at::ones({8, 16});
    return at::cat({at::alpha_dropout(x, 0.5, /*train=*/true), at::bernoulli(x, 0.5)});
  };
  const at::Tensor plain = numbers();
  const OwnOperators operators(code, none, /*always=*/false, direct);
  return numbers().equal(plain);
}

TEST(OwnOperators, LeaveOperatorsThatCallThemToLibtorchIfDirect) {
  EXPECT_TRUE(are_libtorchs_numbers(true));
  EXPECT_FALSE(are_libtorchs_numbers(false));
}

}  // namespace
}  // namespace tutti
