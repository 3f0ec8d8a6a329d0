#include "tensors/draws.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tensors/process_state.h"

namespace tutti {
namespace {

constexpr DrawKey kKey{"MixUp", 7, 0};

TEST(DrawsTest, AreAFunctionOfSeedAndKey) {
  const auto numbers = [](uint64_t seed, const DrawKey& key) {
    const auto draws = make_draws(seed, key);
    return std::vector<double>{draws->uniform(0, 1), draws->beta(0.2, 0.2), draws->uniform(0, 1)};
  };
  const auto once = numbers(1, kKey);
  seed_default_generators(99);
  EXPECT_EQ(numbers(1, kKey), once);
  EXPECT_NE(numbers(2, kKey), once);
  EXPECT_NE(numbers(1, {"CutMix", 7, 0}), once);
  EXPECT_NE(numbers(1, {"MixUp", 8, 0}), once);
  EXPECT_NE(numbers(1, {"MixUp", 7, 1}), once);
}

TEST(DrawsTest, LeaveTheDefaultGeneratorAlone) {
  seed_default_generators(3);
  const at::Tensor expected = at::rand({4});
  seed_default_generators(3);
  const auto draws = make_draws(1, kKey);
  draws->permutation(9);
  draws->uniforms({2, 2});
  EXPECT_TRUE(at::equal(at::rand({4}), expected));
}

TEST(DrawsTest, RandomDrawsFollowTheDefaultGenerator) {
  seed_default_generators(3);
  const double first = random_draws()->uniform(0, 1), second = random_draws()->uniform(0, 1);
  seed_default_generators(3);
  EXPECT_EQ(random_draws()->uniform(0, 1), first);
  EXPECT_NE(first, second);
}

TEST(DrawsTest, IntegersCoverTheirRangeAndNoMore) {
  const auto draws = make_draws(1, kKey);
  std::set<int64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(draws->integer(-2, 3));
  EXPECT_EQ(seen, (std::set<int64_t>{-2, -1, 0, 1, 2}));
}

TEST(DrawsTest, BernoullisAreOfTheirProbability) {
  for (const double probability : {0.0, 0.1, 0.9, 1.0}) {
    const at::Tensor drawn =
        bernoullis(make_draws(1, kKey)->key_of_batch(), 0, {3, 20001}, probability, at::kCPU);
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_NEAR(drawn[i].to(at::kDouble).mean().item<double>(), probability,
                  probability == 0 || probability == 1 ? 0 : 0.01);
  }
}

TEST(DrawsTest, ABernoulliIsOf32BitsOfTheSamplesKey) {
  const at::Tensor drawn = bernoullis(make_draws(1, kKey)->key_of_batch(), 5, {2, 3, 3}, 0.3, at::kCPU);
  for (int64_t i = 0; i < 2; ++i) {
    const RandomKey key = RandomKey(1, "MixUp").fold_in(7).fold_in(static_cast<uint64_t>(5 + i));
    for (int64_t n = 0; n < 9; ++n) {
      const uint64_t bits = key.bits(static_cast<uint64_t>(n / 2)) >> (n % 2 == 0 ? 32 : 0) & 0xffffffff;
      EXPECT_EQ(drawn[i].view(-1)[n].item<bool>(), static_cast<double>(bits) < std::round(0.3 * 0x1p32));
    }
  }
}

TEST(DrawsTest, APermutationHasEachNumberOnce) {
  const at::Tensor drawn = make_draws(1, kKey)->permutation(50);
  EXPECT_TRUE(at::equal(std::get<0>(drawn.sort()), at::arange(50)));
  EXPECT_FALSE(at::equal(drawn, at::arange(50)));
}

// Beta(a, a) has the mean 1/2 and the variance 1 / (4 (2 a + 1)).
TEST(DrawsTest, BetaHasItsMeanAndVariance) {
  const auto draws = make_draws(1, kKey);
  for (const double a : {0.2, 2.0}) {
    const int n = 4000;
    double sum = 0, squares = 0;
    for (int i = 0; i < n; ++i) {
      const double x = draws->beta(a, a);
      sum += x;
      squares += x * x;
    }
    EXPECT_NEAR(sum / n, 0.5, 0.03);
    EXPECT_NEAR(squares / n - sum / n * sum / n, 1 / (4 * (2 * a + 1)), 0.01);
  }
}

TEST(DrawsTest, ChoosesDifferentIndicesByTheirProbabilities) {
  const std::vector<double> probabilities = {0.0, 0.9, 0.05, 0.05};
  int first_is_likely = 0;
  for (int64_t step = 0; step < 300; ++step) {
    auto chosen = make_draws(1, {"", step, 0})->choose(3, probabilities);
    first_is_likely += chosen[0] == 1;
    std::sort(chosen.begin(), chosen.end());
    EXPECT_EQ(chosen, (std::vector<int64_t>{1, 2, 3}));
  }
  EXPECT_NEAR(first_is_likely, 270, 30);
}

TEST(DrawsTest, ADirichletSumsToOne) {
  const auto drawn = make_draws(1, kKey)->dirichlet(std::vector<double>{1, 2, 3});
  EXPECT_NEAR(drawn[0] + drawn[1] + drawn[2], 1, 1e-12);
}

}  // namespace
}  // namespace tutti
