#include "models/zoo/vit.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "models/layers/norm.h"

namespace tutti {
namespace {

const VitOptions kSmallVit{.image_size = 32,
                           .patch_size = 8,
                           .num_layers = 1,
                           .num_heads = 4,
                           .hidden_dim = 64,
                           .mlp_dim = 128,
                           .num_classes = 10};

// torchvision's initial values, by their deviation: uniform numbers in [-b, b) deviate by b / sqrt(3).
TEST(VitTest, StartsAsTorchvisionsDoes) {
  Vit model(kSmallVit);
  materialise(model, 1);
  std::map<std::string, double> found;
  for (const auto& [name, parameter] : parameters(model))
    found[name] = parameter->tensor.square().mean().sqrt().item<double>();
  const std::string block = "encoder.layers.encoder_layer_0.";
  const std::map<std::string, double> wanted = {
      {"class_token", 0.0},
      {"conv_proj.weight", std::sqrt(1.0 / (3 * 8 * 8))},
      {"conv_proj.bias", 0.0},
      {"encoder.pos_embedding", 0.02},
      {block + "self_attention.in_proj_weight", std::sqrt(2.0 / (64 + 192))},
      {block + "self_attention.in_proj_bias", 0.0},
      {block + "self_attention.out_proj.weight", std::sqrt(1.0 / (3 * 64))},
      {block + "self_attention.out_proj.bias", 0.0},
      {block + "mlp.0.weight", std::sqrt(2.0 / (64 + 128))},
      {block + "mlp.0.bias", 1e-6},
      {block + "mlp.3.weight", std::sqrt(2.0 / (64 + 128))},
      {block + "ln_1.weight", 1.0},
      {"heads.head.weight", 0.0},
      {"heads.head.bias", 0.0}};
  for (const auto& [name, deviation] : wanted) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_NEAR(found[name], deviation, (name.ends_with("bias") ? 0.3 : 0.05) * deviation) << name;
  }
}

// Outputs of ordinary size hardly show it.
TEST(VitTest, NormsAddTorchvisionsEpsilon) {
  Vit model(kSmallVit);
  int norms = 0;
  for (const auto& [name, layer] : layers(model))
    if (const auto* norm = dynamic_cast<const LayerNorm*>(layer)) {
      EXPECT_EQ(norm->options().eps, 1e-6) << name;
      ++norms;
    }
  EXPECT_EQ(norms, 3);
}

}  // namespace
}  // namespace tutti
