#include "models/layers/attention.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "models/layers/embedding.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int64_t kFeatures = 12, kHeads = 3, kLength = 5;
const double kScale = 1.0 / std::sqrt(double(kFeatures) / kHeads);

at::Tensor weight(Layer& layer, const std::string& name) {
  for (const auto& one : parameters(layer))
    if (one.name == name) return one.parameter->tensor.detach();
  throw std::logic_error("no parameter " + name);
}

at::Tensor heads_of(const at::Tensor& x) {
  return x.view({x.size(0), x.size(1), kHeads, kFeatures / kHeads}).transpose(1, 2);
}

at::Tensor joined(const at::Tensor& x) { return x.transpose(1, 2).flatten(2); }

// The number 3 h + j for key j of head h, for any query.
PositionBias by_key() {
  return [](int64_t length, at::Device) {
    return (3.0 * at::arange(kHeads).view({kHeads, 1, 1}) + at::arange(length)).to(at::kFloat);
  };
}

at::Tensor later_keys(int64_t length) { return at::ones({length, length}, at::kBool).triu(1); }

TEST(CausalSelfAttention, AddsABiasToScaledScoresBeforeTheSoftmax) {
  CausalSelfAttention layer({.features = kFeatures, .heads = kHeads});
  materialise(layer, 1);
  const at::Tensor x = at::randn({2, kLength, kFeatures});
  const auto qkv = (at::matmul(x, weight(layer, "c_attn.weight")) * 1.0).split(kFeatures, -1);
  const auto expected = [&](const at::Tensor& bias) {
    const at::Tensor scores =
        at::matmul(heads_of(qkv[0]), heads_of(qkv[1]).transpose(-2, -1)) * kScale + bias;
    const at::Tensor chances = scores.masked_fill(later_keys(kLength), -1e4).softmax(-1);
    return at::matmul(joined(at::matmul(chances, heads_of(qkv[2]))), weight(layer, "c_proj.weight"));
  };
  EXPECT_TRUE(at::allclose(layer.forward(x).tensor(), expected(at::zeros({1})), 1e-4, 1e-6));
  layer.set_position_bias(by_key(), kLength);
  EXPECT_TRUE(at::allclose(layer.forward(x).tensor(), expected(by_key()(kLength, at::kCPU)), 1e-4, 1e-6));
}

// The bias of place 3000 has no room for the places beside it in 16 bits; what the softmax sees has.
TEST(CausalSelfAttention, AFarPlacesBiasIsExactIn16Bits) {
  constexpr int64_t kFar = 3000;
  CausalSelfAttention layer({.features = kFeatures, .heads = kHeads});
  materialise(layer, 1);
  layer.set_position_bias(
      [](int64_t length, at::Device) {
        return at::arange(length).to(at::kFloat).expand({kHeads, 1, length});
      },
      kFar);
  at::Tensor qkv = at::zeros({1, kFar, 3 * kFeatures}, at::kBFloat16);
  qkv[0][kFar - 1].narrow(0, 2 * kFeatures, kFeatures).fill_(1.0);  // the last value is 1, all others 0
  const auto given = layer.slots()[0]->after([&](const TensorTree&, TensorTree) { return TensorTree(qkv); });
  at::Tensor mixed;
  const auto seen = layer.slots()[1]->before([&](const TensorTree& input) { mixed = input.tensor(); });
  layer.slots()[1]->fill(std::make_shared<Sequential>(std::vector<std::shared_ptr<Layer>>{}));
  layer.forward(at::zeros({1, kFar, kFeatures}));
  EXPECT_NEAR(mixed[0][kFar - 1][0].item<double>(), 1.0 - std::exp(-1.0), 0.01);
}

TEST(BertSelfAttention, MaskedKeysAreNotSeen) {
  BertSelfAttention layer({.features = kFeatures, .heads = kHeads});
  materialise(layer, 1);
  at::Tensor x = at::randn({2, kLength, kFeatures});
  const at::Tensor mask = at::tensor({1, 1, 1, 0, 0, 1, 1, 1, 1, 1}).view({2, 1, 1, kLength}).to(at::kBool);
  const auto output = [&] { return layer.forward(MaskedStates{x, mask}.tree()).tensor().detach(); };
  const at::Tensor before = output();
  const at::Tensor alone = layer.forward(x.narrow(0, 0, 1).narrow(1, 0, 3)).tensor();
  EXPECT_TRUE(at::allclose(before[0].narrow(0, 0, 3), alone[0], 1e-5, 1e-7));
  x[0].narrow(0, 3, 2).fill_(7.0);
  EXPECT_TRUE(output()[0].narrow(0, 0, 3).equal(before[0].narrow(0, 0, 3)));
}

TEST(BertSelfAttention, AddsABiasAndAMask) {
  BertSelfAttention layer({.features = kFeatures, .heads = kHeads});
  materialise(layer, 1);
  const at::Tensor x = at::randn({2, kLength, kFeatures});
  const at::Tensor bias = at::randn({1, kHeads, kLength, kLength});
  const at::Tensor mask = at::tensor({1, 1, 0, 1, 1, 1, 0, 0, 1, 1}).view({2, 1, 1, kLength}).to(at::kBool);
  layer.set_position_bias([&](int64_t, at::Device) { return bias; }, kLength);
  const auto projected = [&](const char* name) {
    return heads_of(at::linear(x, weight(layer, std::string(name) + ".weight")));
  };
  const at::Tensor scores =
      at::matmul(projected("query"), projected("key").transpose(-2, -1)) * kScale + bias;
  const at::Tensor chances = scores.masked_fill(mask.logical_not(), -1e30).softmax(-1);
  EXPECT_TRUE(at::allclose(layer.forward(MaskedStates{x, mask}.tree()).tensor(),
                           joined(at::matmul(chances, projected("value"))), 1e-4, 1e-6));
}

// As in transformers: all its keys get the same number added, and weigh alike but for their scores' rounding.
TEST(BertSelfAttention, ASequenceOfNothingButPaddingGivesNumbers) {
  BertSelfAttention layer({.features = kFeatures, .heads = kHeads});
  materialise(layer, 1);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const auto& one : parameters(layer))
      one.parameter->tensor = one.parameter->tensor.detach().to(dtype);
    const MaskedStates padding{at::randn({1, kLength, kFeatures}).to(dtype),
                               at::zeros({1, 1, 1, kLength}, at::kBool)};
    EXPECT_TRUE(layer.forward(padding.tree()).tensor().isfinite().all().item<bool>()) << dtype;
  }
}

TEST(SelfAttention, RefusesSequencesLongerThanItsBias) {
  CausalSelfAttention layer({.features = kFeatures, .heads = kHeads});
  materialise(layer, 1);
  layer.set_position_bias(by_key(), 4);
  EXPECT_NO_THROW(layer.forward(at::zeros({1, 4, kFeatures})));
  EXPECT_THAT(
      [&] {
        layer.forward(at::zeros({1, 5, kFeatures}));
      },
      testing::ThrowsMessage<UserError>(testing::HasSubstr("5 tokens is too long")));
}

TEST(LongestSequence, IsWhatTablesAndBiasesAllow) {
  using Layers = std::vector<std::shared_ptr<Layer>>;
  Sequential none(Layers{std::make_shared<CausalSelfAttention>(
      CausalSelfAttention::Options{.features = kFeatures, .heads = kHeads})});
  EXPECT_EQ(longest_sequence(none), 0);
  const auto attention = std::make_shared<CausalSelfAttention>(
      CausalSelfAttention::Options{.features = kFeatures, .heads = kHeads});
  Sequential both(Layers{std::make_shared<LearnedPositions>(9, kFeatures), attention});
  EXPECT_EQ(longest_sequence(both), 9);
  attention->set_position_bias(by_key(), 7);
  EXPECT_EQ(longest_sequence(both), 7);
}

TEST(TokenEmbedding, PaddingStartsAtZeroAndLearnsNothing) {
  TokenEmbedding table(6, 4, /*padding=*/2);
  materialise(table, 1);
  const at::Tensor rows = parameters(table)[0].parameter->tensor;
  EXPECT_EQ(rows[2].abs().sum().item<double>(), 0.0);
  EXPECT_GT(rows[3].abs().min().item<double>(), 0.0);
  table.forward(at::tensor({2, 3, 2}, at::kLong)).tensor().sum().backward();
  EXPECT_EQ(rows.grad()[2].abs().sum().item<double>(), 0.0);
  EXPECT_EQ(rows.grad()[3].sum().item<double>(), 4.0);
}

}  // namespace
}  // namespace tutti
