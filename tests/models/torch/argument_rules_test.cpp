#include "models/torch/argument_rules.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using Stack = torch::jit::Stack;

std::string problem(const char* name, const Stack& arguments) {
  const ArgumentRule rule = argument_rule(name);
  return rule ? rule(arguments) : "no rule";
}

TEST(ArgumentRules, ClassesOfCtcAreThoseOfItsScores) {
  const at::Tensor scores = at::zeros({5, 1, 3});
  const auto with = [&](int64_t label, int64_t length) {
    return problem("aten::ctc_loss", {scores, at::full({1, 2}, label, at::kLong), std::vector<int64_t>{5},
                                      std::vector<int64_t>{length}, 0, 1, false});
  };
  EXPECT_THAT(with(2, 2), IsEmpty());
  EXPECT_THAT(with(3, 2), HasSubstr("no classes"));
  EXPECT_THAT(with(-70000, 2), HasSubstr("no classes"));
  EXPECT_THAT(with(2, -1), HasSubstr("negative"));
}

TEST(ArgumentRules, OffsetsOfBagsRiseWithinTheIndices) {
  const at::Tensor weight = at::zeros({4, 2}), indices = at::arange(3, at::kLong);
  const auto with = [&](const std::vector<int64_t>& offsets) {
    return problem("aten::embedding_bag", {weight, indices, at::tensor(offsets)});
  };
  EXPECT_THAT(with({0, 2, 2}), IsEmpty());
  EXPECT_THAT(with({0, -1000000, 2}), HasSubstr("no places"));
  EXPECT_THAT(with({0, 4}), HasSubstr("no places"));
  EXPECT_THAT(with({0, 2, 1}), HasSubstr("do not rise"));
}

TEST(ArgumentRules, WeightsOfLstmsFitTheirInputs) {
  const auto with = [](int64_t hidden, int64_t rows, int64_t inputs, int64_t biases) {
    const at::Tensor state = at::zeros({1, 2, hidden});
    return problem("aten::lstm", {at::zeros({2, 5, 3}), std::vector<at::Tensor>{state, state},
                                  std::vector<at::Tensor>{at::zeros({rows, inputs}), at::zeros({rows, 4}),
                                                          at::zeros({biases}), at::zeros({biases})},
                                  true, 1, 0.0, true, false, true});
  };
  EXPECT_THAT(with(4, 16, 3, 16), IsEmpty());
  EXPECT_THAT(with(4000, 16, 3, 16), HasSubstr("do not fit"));
  EXPECT_THAT(with(4, 16, 3000, 16), HasSubstr("do not fit"));
  EXPECT_THAT(with(4, 16, 3, 1), HasSubstr("do not fit"));
}

TEST(ArgumentRules, DivisionsThatAProcessorCannotDoAreNamed) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  for (const char* name : {"aten::floordiv", "aten::remainder", "aten::divmod"}) {
    EXPECT_THAT(problem(name, {kLeast, -1}), HasSubstr("has no place")) << name;
    EXPECT_THAT(problem(name, {3, 0}), HasSubstr("division by zero")) << name;
    EXPECT_THAT(problem(name, {7, -2}), IsEmpty()) << name;
  }
  const at::Tensor least = at::full({2}, kLeast, at::kLong), minus = at::full({2}, -1, at::kLong);
  EXPECT_THAT(problem("aten::div_", {least, minus, "trunc"}), HasSubstr("has no place"));
  EXPECT_THAT(problem("aten::div", {least, minus, "floor"}), IsEmpty());
  EXPECT_THAT(problem("aten::div", {minus, minus, "trunc"}), IsEmpty());
}

TEST(ArgumentRules, TextsToLookForAreNotEmpty) {
  EXPECT_THAT(problem("aten::count", {"aaa", "", 0, 3}), HasSubstr("empty text"));
  EXPECT_THAT(problem("aten::count", {"aaa", "a", 0, 3}), IsEmpty());
}

TEST(ArgumentRules, TextsOfTensorsAndListsOfTensorsAreBounded) {
  const at::Tensor large = at::zeros({1}).expand({200'000'000}), small = at::zeros({3});
  for (const char* name : {"aten::str", "aten::format", "aten::percentFormat"}) {
    EXPECT_THAT(problem(name, {large}), HasSubstr("10,000,000 items")) << name;
    EXPECT_THAT(problem(name, {small}), IsEmpty()) << name;
  }
  for (const char* name : {"aten::hsplit", "aten::vsplit", "aten::dsplit", "aten::tensor_split"})
    EXPECT_THAT(problem(name, {large, 2'000'000}), HasSubstr("1,000,000 tensors")) << name;
  EXPECT_THAT(problem("aten::unbind", {large, 0}), HasSubstr("1,000,000 tensors"));
}

}  // namespace
}  // namespace tutti
