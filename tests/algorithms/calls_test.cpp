// Every call that docs/algorithms.md shows, as it stands there.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/augmentation/added_transform.h"
#include "algorithms/augmentation/colout.h"
#include "algorithms/augmentation/cutmix.h"
#include "algorithms/augmentation/cutout.h"
#include "algorithms/augmentation/mixup.h"
#include "algorithms/augmentation/progressive_resizing.h"
#include "algorithms/catalog.h"
#include "algorithms/loop/distillation.h"
#include "algorithms/loop/dpo.h"
#include "algorithms/loop/ema.h"
#include "algorithms/loop/gradient_clipping.h"
#include "algorithms/loop/label_smoothing.h"
#include "algorithms/loop/layer_freezing.h"
#include "algorithms/loop/selective_backprop.h"
#include "algorithms/loop/seq_length_warmup.h"
#include "algorithms/surgery/alibi.h"
#include "algorithms/surgery/blurpool.h"
#include "algorithms/surgery/channels_last.h"
#include "algorithms/surgery/factorize.h"
#include "algorithms/surgery/gated_linear_units.h"
#include "algorithms/surgery/ghost_batchnorm.h"
#include "algorithms/surgery/gyro_dropout.h"
#include "algorithms/surgery/lora.h"
#include "algorithms/surgery/low_precision_norms.h"
#include "algorithms/surgery/squeeze_excite.h"
#include "algorithms/surgery/stochastic_depth.h"
#include "algorithms/surgery/weight_standardization.h"
#include "models/zoo/gpt.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

// clang-format off
TEST(CallsOfTheDocs, CompileForData) {
  const at::Tensor images = at::rand({4, 3, 8, 8}), inputs = images, image = images[0];
  const at::Tensor targets = at::tensor({1, 2, 3, 4}, at::kLong);
  const Batch batch = TensorTree::Children{{"input_ids", at::ones({2, 128}, at::kLong)}};
  {
    const at::Tensor dropped = colout_batch(images, *random_draws());
    EXPECT_EQ(dropped.size(2), 6);
  }
  {
    const CutMixed mixed = cutmix_batch(images, targets, *random_draws());
    EXPECT_EQ(mixed.input.sizes(), images.sizes());
  }
  {
    const at::Tensor cut = cutout_batch(images, *random_draws());
    EXPECT_EQ(cut.sizes(), images.sizes());
  }
  {
    const MixedUp mixed = mixup_batch(inputs, targets, *random_draws());
    EXPECT_EQ(mixed.input.sizes(), inputs.sizes());
  }
  {
    const auto small = resize_batch(images, targets, 0.5, ResizeMode::kResize, false, *random_draws());
    EXPECT_EQ(small.first.size(3), 4);
  }
  {
    const at::Tensor mixed = augmix_image(image, {}, *random_draws());
    EXPECT_EQ(mixed.sizes(), image.sizes());
  }
  {
    const at::Tensor changed = randaugment_image(image, {}, *random_draws());
    EXPECT_EQ(changed.sizes(), image.sizes());
  }
  {
    const auto model = [](const at::Tensor& x) { return x.flatten(1).narrow(1, 0, 10); };
    const auto losses = [](const at::Tensor& y, const at::Tensor&) { return y.sum(1); };
    const auto [hard, labels] = select_using_loss(inputs, targets, model, losses, *random_draws());
    EXPECT_EQ(labels.numel(), 2);
  }
  {
    const Batch shorter = set_batch_sequence_length(batch, 64);
    EXPECT_EQ(shorter["input_ids"].size(1), 64);
  }
}

TEST(CallsOfTheDocs, CompileForTheLoop) {
  const at::Tensor logits = at::rand({4, 10}), targets = at::tensor({1, 2, 3, 4}, at::kLong);
  const at::Tensor scores = logits, of_teacher = at::rand({4, 10}), counted = at::ones({4});
  {
    const at::Tensor divergence = distillation_loss(scores, of_teacher, counted, 2.0);
    EXPECT_GT(divergence.item<double>(), 0);
  }
  {
    const at::Tensor policy = at::rand({4, 2}), reference = at::rand({4, 2});
    const at::Tensor loss = dpo_loss(policy, reference, 0.1);
    EXPECT_GT(loss.item<double>(), 0);
  }
  {
    const at::Tensor smoothed = smooth_labels(logits, targets, 0.1);
    EXPECT_EQ(smoothed.sizes(), logits.sizes());
  }
  {
    const std::vector<at::Tensor> weights = {at::ones({2})}, averages = {at::zeros({2})};
    compute_ema(weights, averages, 0.99);
    EXPECT_GT(averages[0].sum().item<double>(), 0);
  }
  {
    std::vector<ParamView> views = {whole_view("w", at::zeros({2}))};
    views[0].grad = at::full({2}, 100.0);
    apply_gradient_clipping(views, ClippingType::kNorm, 1.0);
    EXPECT_LT(views[0].grad.max().item<double>(), 1);
  }
}

TEST(CallsOfTheDocs, CompileForModels) {
  {
    Gpt model({.vocab_size = 8, .n_positions = 4, .n_embd = 8, .n_layer = 1, .n_head = 1});
    apply_alibi(model, 2048);
    apply_gated_linear_units(model);
    apply_lora(model, {.r = 16, .alpha = 32});
    apply_ghost_batchnorm(model, 32);
    apply_stochastic_depth(model, {.target_layer_name = "ResNetBottleneck"});
    apply_factorization(model);
    apply_gyro_dropout(model, 1000, 10);
    freeze_layers(model, 0.75);
    const Precision precision{.autocast = at::kBFloat16};
    apply_low_precision_groupnorm(model, precision);
    apply_low_precision_layernorm(model, precision);
    apply_blurpool(model);
    apply_squeeze_excite(model);
    apply_weight_standardization(model);
    apply_channels_last(model);
    EXPECT_FALSE(slots(model).empty());
  }
}
// clang-format on

TEST(CallsOfTheDocs, StandInThisTest) {
  const std::string source = read_text(TUTTI_SOURCE_DIR "/tests/algorithms/calls_test.cpp");
  for (const Entry& entry : algorithm_catalog().entries)
    if (const std::string& call = entry.origin.call; !call.empty())
      EXPECT_NE(source.find("    " + call + '\n'), std::string::npos) << call;
}

}  // namespace
}  // namespace tutti
