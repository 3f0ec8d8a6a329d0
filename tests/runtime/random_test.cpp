#include "runtime/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <vector>

namespace tutti {
namespace {

// From an independent implementation (Python): runs are resumed by other builds, so draws must never change.
TEST(DrawTest, DrawsAreFrozen) {
  const RandomKey draw(17, "shuffle");
  EXPECT_EQ(draw.bits(0), 0xe7fdbca5aa0e0675u);
  EXPECT_EQ(draw.bits(5), 0xde71c661e82762eau);
  EXPECT_EQ(draw.fold_in(3).bits(), 0x45a2759bc3b375c7u);
  EXPECT_EQ(RandomKey(17, "augmentation of samples").bits(), 0x9f450642056552d1u);
}

TEST(DrawTest, EveryPartOfTheKeyCounts) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (const char* purpose : {"", "a", "b", "ab", "ba", "abcdefgh", "abcdefghi"}) {
      const RandomKey draw(seed, purpose);
      for (uint64_t word = 0; word < 10; ++word) {
        seen.insert(draw.bits(word));
        seen.insert(draw.fold_in(word).bits());
        seen.insert(draw.fold_in(word).fold_in(word + 1).bits());
        seen.insert(draw.fold_in(word + 1).fold_in(word).bits());
      }
    }
  }
  EXPECT_EQ(seen.size(), 10u * 7 * 10 * 4);
}

TEST(DrawTest, UniformLiesInTheUnitIntervalAndIsEven) {
  const RandomKey draw(1, "uniform");
  constexpr int kDraws = 100'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = draw.uniform(i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / kDraws, 1.0 / 2, 0.005);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.005);
}

// Pearson's statistic of `counts` against equal shares; its mean is the number of cells less one.
double chi_squared(const std::vector<int>& counts) {
  const double expected = std::accumulate(counts.begin(), counts.end(), 0.0) / counts.size();
  double sum = 0;
  for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

TEST(DrawTest, BelowIsEven) {
  const RandomKey draw(2, "below");
  std::vector<int> counts(10);
  for (int i = 0; i < 100'000; ++i) ++counts.at(draw.below(10, i));
  EXPECT_LT(chi_squared(counts), 33.7);  // exceeded once in 10,000 keys
  EXPECT_EQ(draw.below(1), 0u);
}

std::vector<uint64_t> order(uint64_t size, const RandomKey& draw) {
  const Permutation permutation(size, draw);
  std::vector<uint64_t> out;
  for (uint64_t i = 0; i < size; ++i) out.push_back(permutation(i));
  return out;
}

TEST(PermutationTest, PermutationsAreFrozen) {
  EXPECT_THAT(order(10, RandomKey(1, "order")), testing::ElementsAre(8, 6, 0, 9, 5, 2, 3, 4, 1, 7));
  std::vector<uint64_t> thousand = order(1000, RandomKey(1, "order"));
  thousand.resize(5);
  EXPECT_THAT(thousand, testing::ElementsAre(279, 320, 36, 145, 879));
}

TEST(PermutationTest, IsABijectionOfEverySmallSize) {
  for (uint64_t size = 1; size <= 1000; ++size) {
    std::vector<bool> hit(size);
    for (const uint64_t at : order(size, RandomKey(3, "order").fold_in(size))) {
      ASSERT_LT(at, size);
      ASSERT_FALSE(hit[at]) << size;
      hit[at] = true;
    }
  }
}

TEST(PermutationTest, IsABijectionOfLargeSizes) {
  for (const uint64_t size : {65'535u, 65'536u, 65'537u, 1'000'003u}) {
    std::vector<bool> hit(size);
    for (const uint64_t at : order(size, RandomKey(4, "order"))) hit.at(at) = true;
    EXPECT_TRUE(std::all_of(hit.begin(), hit.end(), [](bool b) { return b; })) << size;
  }
}

TEST(PermutationTest, ReachesAllOfAHugeRange) {
  constexpr uint64_t kSize = (uint64_t{1} << 60) + 12345;
  const Permutation permutation(kSize, RandomKey(5, "order"));
  std::set<uint64_t> seen;
  int upper_half = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    const uint64_t at = permutation(i);
    ASSERT_LT(at, kSize);
    seen.insert(at);
    upper_half += at >= kSize / 2;
  }
  EXPECT_EQ(seen.size(), 10'000u);
  EXPECT_NEAR(upper_half, 5000, 250);
}

// Of three items, each of the six orders should come equally often.
TEST(PermutationTest, OrdersOfThreeAreEven) {
  std::vector<int> counts(9 * 3);
  for (uint64_t epoch = 0; epoch < 60'000; ++epoch) {
    const auto shuffled = order(3, RandomKey(6, "order").fold_in(epoch));
    ++counts[9 * shuffled[0] + 3 * shuffled[1] + shuffled[2]];
  }
  std::erase(counts, 0);
  ASSERT_EQ(counts.size(), 6u);
  EXPECT_LT(chi_squared(counts), 25.7);  // exceeded once in 10,000
}

TEST(PermutationTest, EveryPlaceGetsEverySampleEquallyOften) {
  constexpr uint64_t kSize = 20;
  std::vector<int> counts(kSize * kSize);
  for (uint64_t epoch = 0; epoch < 20'000; ++epoch) {
    const auto shuffled = order(kSize, RandomKey(7, "order").fold_in(epoch));
    for (uint64_t i = 0; i < kSize; ++i) ++counts[i * kSize + shuffled[i]];
  }
  EXPECT_LT(chi_squared(counts), 361 + 4 * std::sqrt(2 * 361.0));
}

TEST(PermutationTest, NeighboursDoNotStayTogether) {
  const auto shuffled = order(100'000, RandomKey(8, "order"));
  int together = 0;
  for (size_t i = 1; i < shuffled.size(); ++i) together += shuffled[i] == shuffled[i - 1] + 1;
  EXPECT_LT(together, 8);  // one is expected
}

}  // namespace
}  // namespace tutti
