#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/transforms/token_transforms.h"
#include "runtime/error.h"
#include "tests/data/transforms/given_draws.h"

namespace tutti {
namespace {

MaskTokensOptions options_of_bert() { return {.mask_token_id = 103, .vocab_size = 1000}; }

// Numbers below 0.15 choose a token; of those, below 0.8 masks it; of the rest, below 0.5 makes it random.
TEST(MaskTokens, FollowsTheFourDraws) {
  const at::Tensor tokens = at::tensor({10, 11, 12, 13, 14, 15});
  GivenDraws draws;
  draws.of_uniforms = {
      at::tensor({0.1F, 0.14F, 0.15F, 0.0F, 0.9F, 0.1F}), at::tensor({0.79F, 0.8F, 0.0F, 0.99F, 0.0F, 0.0F}),
      at::tensor({0.0F, 0.49F, 0.0F, 0.5F, 0.0F, 0.9F}), at::tensor({0.5F, 0.25F, 0.5F, 0.5F, 0.5F, 0.5F})};
  const MaskedTokens masked = mask_tokens(tokens, options_of_bert(), draws);
  EXPECT_TRUE(at::equal(masked.input, at::tensor({103, 250, 12, 13, 14, 103}))) << masked.input;
  EXPECT_TRUE(at::equal(masked.target, at::tensor({10, 11, -100, 13, -100, 15}))) << masked.target;
  EXPECT_TRUE(draws.all_drawn());
  EXPECT_TRUE(at::equal(tokens, at::tensor({10, 11, 12, 13, 14, 15}))) << "what is given stays";
}

TEST(MaskTokens, SpecialTokensAreNeverChosen) {
  MaskTokensOptions options = options_of_bert();
  options.special_token_ids = {0, 101};
  options.mlm_probability = 1;
  const at::Tensor tokens = at::tensor({101, 7, 0, 0, 8});
  const auto draws = make_draws(1, {"mask", 0, 0});
  const MaskedTokens masked = mask_tokens(tokens, options, *draws);
  EXPECT_TRUE(at::equal(masked.target, at::tensor({-100, 7, -100, -100, 8})));
  for (const int64_t place : {0, 2, 3}) EXPECT_TRUE(at::equal(masked.input[place], tokens[place]));
}

TEST(MaskTokens, FillingIsNeverChosen) {
  const at::Tensor tokens = at::full({2, 4}, 7, at::kLong),
                   filled = at::tensor({1, 1, 0, 1, 1, 0, 0, 0}).view({2, 4});
  MaskTokensOptions options = options_of_bert();
  options.mlm_probability = 1;
  for (const char* array : {"attention_mask", "segments"}) {
    Batch batch = TensorTree::Children{{"input", tokens}, {array, filled}};
    mask_tokens_transform(options)->apply(batch, [](int64_t row) { return make_draws(1, {"mask", 0, row}); });
    EXPECT_TRUE(at::equal(batch["target"].ne(-100), filled.ne(0))) << array;
    EXPECT_TRUE(at::equal(batch["input"].masked_select(filled.eq(0)), at::full({4}, 7, at::kLong))) << array;
  }
}

// Standard deviations are below 0.0013.
TEST(MaskTokens, MasksAsBertDoes) {
  const int64_t count = 1'000'000;
  const at::Tensor tokens = at::full({1000, 1000}, 5, at::kLong);
  const auto draws = make_draws(3, {"mask", 0, 0});
  const MaskedTokens masked = mask_tokens(tokens, options_of_bert(), *draws);
  const auto fraction = [](const at::Tensor& of, double all) { return of.sum().item<double>() / all; };
  const at::Tensor chosen = masked.target.eq(5);
  EXPECT_TRUE(masked.target.eq(-100).logical_or(chosen).all().item<bool>());
  const double all_chosen = chosen.sum().item<double>();
  EXPECT_NEAR(all_chosen / count, 0.15, 0.002);
  EXPECT_NEAR(fraction(masked.input.eq(103), all_chosen), 0.8, 0.005);
  const at::Tensor random = masked.input.ne(103).logical_and(masked.input.ne(5));
  EXPECT_NEAR(fraction(random, all_chosen), 0.1, 0.005);
  EXPECT_TRUE(random.logical_and(chosen.logical_not()).any().item<bool>() == false);
  const at::Tensor words = masked.input.masked_select(random);
  EXPECT_GE(words.min().item<int64_t>(), 0);
  EXPECT_LT(words.max().item<int64_t>(), 1000);
  EXPECT_NEAR(words.to(at::kDouble).mean().item<double>(), 499.5, 10);
}

SampleSpec tokens_of(int64_t classes, at::ScalarType dtype = at::kLong) {
  return {{{"input", {8}}, {"target", {}}}, classes, {{"input", dtype}, {"target", at::kFloat}}};
}

TEST(MaskTokens, MakesTheTargetATokenForEachOfTheInput) {
  const SampleSpec after =
      mask_tokens_transform({.mask_token_id = 256, .vocab_size = 257})->spec(tokens_of(256));
  EXPECT_EQ(after.describe("target"), "int64 [8]");
  EXPECT_EQ(after.classes, 257) << "the mask is a token, too";
}

TEST(MaskTokens, RefusesWhatIsNoTokenAndAMaskBeyondTheVocabulary) {
  const auto blamed = [](const MaskTokensOptions& options, const SampleSpec& samples) {
    try {
      mask_tokens_transform(options)->spec(samples);
    } catch (const TransformError& error) {
      return error.option;
    }
    return std::string("none");
  };
  EXPECT_EQ(blamed(options_of_bert(), tokens_of(256)), "none");
  EXPECT_EQ(blamed(options_of_bert(), tokens_of(256, at::kFloat)), "kind");
  EXPECT_EQ(blamed({.mask_token_id = 1000, .vocab_size = 1000}, tokens_of(256)), "mask_token_id");
}

TEST(MaskTokens, EachSampleOfABatchHasDrawsOfItsOwn) {
  const at::Tensor tokens = at::arange(24).view({3, 8});
  Batch batch = TensorTree::Children{{"input", tokens}};
  const RowDraws draws = [](int64_t row) { return make_draws(1, {"mask", 0, row + 40}); };
  MaskTokensOptions options = options_of_bert();
  options.mlm_probability = 0.5;
  mask_tokens_transform(options)->apply(batch, draws);
  for (int64_t row = 0; row < 3; ++row) {
    const MaskedTokens alone = mask_tokens(tokens[row], options, *draws(row));
    EXPECT_TRUE(at::equal(batch["input"][row], alone.input));
    EXPECT_TRUE(at::equal(batch["target"][row], alone.target));
  }
}

}  // namespace
}  // namespace tutti
