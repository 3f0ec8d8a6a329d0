#include "algorithms/augmentation/cutmix.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/model.h"
#include "tests/algorithms/batch_algorithms.h"

namespace tutti {
namespace {

using enum Event;

TEST(CutMixTest, MixesInputsBeforeForwardAndTargetsBeforeTheLoss) {
  EXPECT_EQ(events_of(CutMix()), (std::set{kBeforeForward, kBeforeLoss}));
  EXPECT_EQ(events_of(CutMix({}, {.interpolate_loss = true})), (std::set{kBeforeForward, kBeforeBackward}));
}

// The box is where images differ from the given ones: the same on all ranks and microbatches of a step.
TEST(CutMixTest, TheBoxIsOneForTheStep) {
  const auto box = [](int64_t step, int64_t first_sample) {
    State state = image_state(step, first_sample);
    const at::Tensor given = state.batch["input"];
    CutMix cutmix;
    run(cutmix, state, {kBeforeForward});
    return state.batch["input"].ne(given).any(0);
  };
  const at::Tensor one = box(1, 0);
  EXPECT_TRUE(one.any().item<bool>());
  EXPECT_TRUE(at::equal(one, box(1, 6)));
  EXPECT_FALSE(at::equal(one, box(2, 0)));
}

// An image and its mask hold the same numbers, before and after.
TEST(CutMixTest, MasksGetTheBoxOfTheImages) {
  State state = image_state(1);
  state.batch.set("target", state.batch["input"].select(1, 0));
  CutMix cutmix;
  run(cutmix, state, {kBeforeForward, kBeforeLoss});
  EXPECT_FALSE(at::equal(state.batch["input"], image_state(1).batch["input"]));
  EXPECT_TRUE(at::equal(state.batch["target"], state.batch["input"].select(1, 0)));
}

// A box of 2 x 5 of 8 x 10 pixels is an eighth of the image.
TEST(CutMixTest, TargetsAreMixedByTheAreaOfTheBox) {
  const State state = image_state();
  const CutMixed mixed = cutmix_batch(state.batch["input"], state.batch["target"],
                                      {.top = 6, .left = 0, .bottom = 8, .right = 5}, at::arange(6).flip(0));
  EXPECT_EQ(mixed.adjusted_lambda, 0.875);
  EXPECT_TRUE(at::equal(mixed.target_perm, state.batch["target"].flip(0)));
  EXPECT_EQ(mixed.input.ne(state.batch["input"]).sum().item<int64_t>(), 6 * 2 * 10);
}

}  // namespace
}  // namespace tutti
