#include "models/weight_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(NamesInModels, BeginWithTheNameItself) {
  EXPECT_EQ(names_in_models("fc.weight").front(), "fc.weight");
  EXPECT_EQ(names_in_models("module.fc.weight").front(), "module.fc.weight");
}

TEST(NamesInModels, AreWithoutWrappers) {
  for (const char* name : {"module.fc.weight", "_orig_mod.fc.weight", "module._orig_mod.fc.weight",
                           "_orig_mod.module.fc.weight", "model.fc.weight", "fc._orig_mod.weight",
                           "_fsdp_wrapped_module.fc._checkpoint_wrapped_module.weight"})
    EXPECT_THAT(names_in_models(name), Contains("fc.weight")) << name;
  EXPECT_THAT(names_in_models("submodule.weight"), testing::Not(Contains("subweight")));
  EXPECT_THAT(names_in_models("not_orig_mod.weight"), testing::Not(Contains("notweight")));
}

TEST(NamesInModels, AreThoseOfTransformersWithAndWithoutAHead) {
  EXPECT_THAT(names_in_models("h.0.ln_1.weight"), Contains("transformer.h.0.ln_1.weight"));
  EXPECT_THAT(names_in_models("transformer.h.0.ln_1.weight"), Contains("h.0.ln_1.weight"));
  EXPECT_THAT(names_in_models("embeddings.LayerNorm.gamma"), Contains("bert.embeddings.LayerNorm.weight"));
  EXPECT_THAT(names_in_models("module.bert.embeddings.LayerNorm.beta"),
              Contains("bert.embeddings.LayerNorm.bias"));
  EXPECT_THAT(names_in_models("module.lm_head.weight"), Contains("transformer.wte.weight"));
  EXPECT_THAT(names_in_models("lm_head.weight"), Contains("model.embed_tokens.weight"));
  EXPECT_THAT(names_in_models("layers.0.mlp.up_proj.weight"), Contains("model.layers.0.mlp.up_proj.weight"));
  EXPECT_THAT(names_in_models("cls.predictions.decoder.weight"),
              Contains("bert.embeddings.word_embeddings.weight"));
  EXPECT_THAT(names_in_models("cls.predictions.decoder.bias"), Contains("cls.predictions.bias"));
}

TEST(SavedConstants, AreMasksAndPositions) {
  for (const char* name :
       {"transformer.h.11.attn.bias", "h.0.attn.masked_bias", "position_ids", "bert.embeddings.position_ids"})
    EXPECT_TRUE(is_saved_constant(name)) << name;
  for (const char* name : {"transformer.h.0.attn.c_attn.bias", "fc.bias"})
    EXPECT_FALSE(is_saved_constant(name)) << name;
}

TEST(NamePatternTest, MovesTheTextsOfStars) {
  EXPECT_EQ(NamePattern("head.*", "fc.*").renamed("head.weight"), "fc.weight");
  EXPECT_EQ(NamePattern("*.gamma", "*.weight").renamed("a.b.gamma"), "a.b.weight");
  EXPECT_EQ(NamePattern("blocks.*.norm.*", "h.*.ln.*").renamed("blocks.11.norm.bias"), "h.11.ln.bias");
  EXPECT_EQ(NamePattern("net.*", "*").renamed("net.fc.bias"), "fc.bias");
  EXPECT_EQ(NamePattern("head", "fc").renamed("head"), "fc");
  EXPECT_EQ(NamePattern("a*", "b*").renamed("a"), "b");
}

TEST(NamePatternTest, OtherNamesDoNotFit) {
  EXPECT_EQ(NamePattern("head.*", "fc.*").renamed("heads.weight"), "");
  EXPECT_EQ(NamePattern("head", "fc").renamed("head.weight"), "");
  EXPECT_EQ(NamePattern("*.norm.bias", "*").renamed("bias"), "");
  EXPECT_EQ(NamePattern("a*a", "*").renamed("a"), "");
}

TEST(NamePatternTest, StarsWithoutATextAreRefused) {
  EXPECT_THAT(message_of<UserError>([] { NamePattern("head.*", "*.fc.*"); }),
              HasSubstr("'*.fc.*' has more '*' than 'head.*'"));
}

}  // namespace
}  // namespace tutti
