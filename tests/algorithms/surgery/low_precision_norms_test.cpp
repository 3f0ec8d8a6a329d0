#include "algorithms/surgery/low_precision_norms.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "models/zoo/bert.h"
#include "runtime/error.h"
#include "tensors/autograd.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::HasSubstr;

const Precision kAmp{.name = "amp_bf16", .autocast = at::kBFloat16};

BertOptions norms_of_bert() {
  return {.vocab_size = 19,
          .hidden_size = 8,
          .num_hidden_layers = 2,
          .num_attention_heads = 2,
          .intermediate_size = 12,
          .max_position_embeddings = 10};
}

TEST(LowPrecisionNormsTest, ActAtTheEventOfTheirOption) {
  EXPECT_TRUE(LowPrecisionLayerNorm().match(Event::kInit, State()));
  EXPECT_FALSE(LowPrecisionLayerNorm().match(Event::kAfterLoad, State()));
  EXPECT_TRUE(LowPrecisionGroupNorm(Event::kAfterLoad).match(Event::kAfterLoad, State()));
  EXPECT_FALSE(LowPrecisionGroupNorm(Event::kAfterLoad).match(Event::kInit, State()));
  EXPECT_THROW(LowPrecisionLayerNorm(Event::kFitStart), UserError);
  EXPECT_TRUE(LowPrecisionLayerNorm().needs().last);
}

// Those of the embeddings and of the head, and two a block.
TEST(LowPrecisionNormsTest, TakeOverTheParametersOfTheirPredecessors) {
  BertForMaskedLm model(norms_of_bert());
  materialise(model, 1);
  const auto before = parameters(model);
  EXPECT_EQ(apply_low_precision_layernorm(model, kAmp), 6);
  EXPECT_EQ(apply_low_precision_layernorm(model, kAmp), 0) << "none is left";
  const auto after = parameters(model);
  ASSERT_EQ(after.size(), before.size());
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i].name, before[i].name);
    EXPECT_EQ(after[i].parameter, before[i].parameter);
  }
}

TEST(LowPrecisionNormsTest, GradientsReachParametersInTheirOwnDtype) {
  for (const std::shared_ptr<Layer>& norm :
       {std::shared_ptr<Layer>(std::make_shared<LayerNorm>(6)),
        std::shared_ptr<Layer>(std::make_shared<GroupNorm>(GroupNormOptions{.groups = 2, .channels = 4}))}) {
    Sequential net({norm});
    materialise(net, 1);
    EXPECT_EQ(apply_low_precision_layernorm(net, kAmp) + apply_low_precision_groupnorm(net, kAmp), 1);
    const AutocastScope autocast(kAmp.autocast);
    const at::Tensor y = net.forward(at::randn({3, 4, 6})).tensor();
    EXPECT_EQ(y.scalar_type(), at::kBFloat16);
    y.square().sum().backward();
    for (const auto& one : parameters(net)) EXPECT_EQ(one.parameter->tensor.grad().scalar_type(), at::kFloat);
  }
}

TEST(LowPrecisionNormsTest, SurgeryWithoutEffectIsAWarning) {
  State state;
  std::string warned;
  state.services->on_warning = [&](const std::string& what) { warned = what; };
  state.model = std::make_shared<BertForMaskedLm>(norms_of_bert());
  Logger logger;
  LowPrecisionLayerNorm().apply(Event::kInit, state, logger);
  EXPECT_THAT(warned, HasSubstr("LowPrecisionLayerNorm has no effect: [train] precision is fp32"));
  state.precision = kAmp;
  LowPrecisionGroupNorm().apply(Event::kInit, state, logger);
  EXPECT_EQ(warned, "LowPrecisionGroupNorm has no effect: BertForMaskedLM has no GroupNorm");
  warned.clear();
  LowPrecisionLayerNorm().apply(Event::kInit, state, logger);
  EXPECT_EQ(warned, "");
}

}  // namespace
}  // namespace tutti
