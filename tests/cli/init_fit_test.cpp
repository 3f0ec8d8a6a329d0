// Which recipe of `tutti init` suits a machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/init/draft.h"
#include "cli/init/fit.h"
#include "cli/init/network.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

TEST(InitFitTest, PicturesShrinkUntilAnEpochIsShort) {
  EXPECT_EQ(shorter_size(224, 179), 0);
  EXPECT_EQ(shorter_size(224, 300), 160);
  EXPECT_EQ(shorter_size(224, 400), 128);
  EXPECT_EQ(shorter_size(224, 1e6), 64);
  EXPECT_EQ(shorter_size(64, 1e6), 0);
}

TEST(InitFitTest, ThreadsReadAsFastAsTheModelComputes) {
  EXPECT_EQ(threads_for(/*load_ms=*/40, /*batch_ms=*/4000, 16), 0);
  EXPECT_EQ(threads_for(0.5, 0.1, 16), 0);
  EXPECT_EQ(threads_for(300, 1000, 16), 1);
  EXPECT_EQ(threads_for(300, 40, 16), 8);
  EXPECT_EQ(threads_for(300, 40, 4), 4);
}

TEST(InitFitTest, NetworksTakeTheSamples) {
  const Proposal vectors = {.summary = "rows"};
  const Proposal tokens = {.samples = TokenSamples{.sequence_length = 128, .vocabulary = 256}};
  const Proposal oblong = {.samples = ImageSamples{.height = 32, .width = 48, .have_channels = true}};
  EXPECT_THAT(networks_for(vectors), Each("mlp"));
  EXPECT_THAT(networks_for(tokens), AllOf(Contains("llama"), Not(Contains("mlp"))));
  EXPECT_THAT(networks_for(oblong), AllOf(Contains("resnet50"), Not(Contains("vit"))));
  EXPECT_THAT(message_of<UserError>([&] { network(vectors, "llama"); }),
              HasSubstr("--model llama: the networks for rows are mlp"));
  EXPECT_THAT(draft_recipe(tokens, {.network = "Qwen-2"}),
              AllOf(HasSubstr("model_type = \"qwen2\""), HasSubstr("no_decay = [\"*norm*\", \"*.bias\"]")));
}

TEST(InitFitTest, TheFastestNetworkIsNamedUnlessItIsThere) {
  const Proposal pictures = {
      .samples = ImageSamples{.height = 224, .width = 224, .have_channels = true, .are_files = true}};
  EXPECT_EQ(lightest_network(pictures, ""), "resnet20");
  EXPECT_EQ(lightest_network(pictures, "resnet20"), "");
  EXPECT_EQ(lightest_network({.samples = TextSamples{}}, "bert"), "bert-small");
}

}  // namespace
}  // namespace tutti
