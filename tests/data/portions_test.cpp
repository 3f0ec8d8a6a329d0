#include "data/portions.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>
#include <vector>

namespace tutti {
namespace {

std::vector<int64_t> sizes(const std::vector<Portion>& portions) {
  std::vector<int64_t> all;
  for (const Portion& portion : portions) all.push_back(portion.samples);
  return all;
}

// One after the other, from the begin of the batch to its end; the last one says so.
void expect_whole(const std::vector<Portion>& portions, const Portion& batch) {
  int64_t next = batch.first;
  for (std::size_t i = 0; i < portions.size(); ++i) {
    EXPECT_EQ(portions[i].index, static_cast<int64_t>(i));
    EXPECT_EQ(portions[i].first, next);
    EXPECT_EQ(portions[i].last, i + 1 == portions.size());
    next += portions[i].samples;
  }
  EXPECT_EQ(next, batch.first + batch.samples);
}

TEST(PortionsTest, OfTrainingAreTorchSplits) {
  for (const auto& [samples, plan, expected] :
       std::vector<std::tuple<int64_t, PortionPlan, std::vector<int64_t>>>{{8, {}, {8}},
                                                                           {7, {4}, {2, 2, 2, 1}},
                                                                           {5, {4}, {2, 2, 1, 0}},
                                                                           {2, {4}, {1, 1, 0, 0}},
                                                                           {0, {3}, {0, 0, 0}},
                                                                           {7, {4, 2}, {2, 2, 2, 1}},
                                                                           {3, {4, 2}, {2, 1, 0, 0}},
                                                                           {11, {4, 2}, {3, 3, 3, 2}}}) {
    const Portion batch{.first = 20, .samples = samples};
    const auto portions = portions_of(batch, plan);
    EXPECT_EQ(sizes(portions), expected) << samples;
    expect_whole(portions, batch);
  }
}

TEST(PortionsTest, OfEvaluationFitTwice) {
  const auto of = [](int64_t samples, int64_t most, int64_t fits) {
    const auto portions = portions_of({.first = 3, .samples = samples}, most, fits);
    if (samples > 0) expect_whole(portions, {.first = 3, .samples = samples});
    return sizes(portions);
  };
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(of(10, kAny, kAny), (std::vector<int64_t>{10}));
  EXPECT_EQ(of(10, 4, 4), (std::vector<int64_t>{4, 4, 2}));
  EXPECT_EQ(of(10, 4, 3), (std::vector<int64_t>{3, 1, 3, 1, 2}));
  EXPECT_EQ(of(10, kAny, 6), (std::vector<int64_t>{6, 4}));
  EXPECT_EQ(of(0, 4, 4), std::vector<int64_t>{});
}

TEST(PortionsTest, OfRanksCoverTheGlobalBatch) {
  for (const int world : {1, 2, 3, 5, 8})
    for (int64_t samples = 0; samples < 20; ++samples) {
      std::vector<Portion> ranks;
      for (int rank = 0; rank < world; ++rank)
        ranks.push_back(part_of_rank(samples, {.data_rank = rank, .data_world = world}));
      expect_whole(ranks, {.samples = samples});
      const std::vector<int64_t> all = sizes(ranks);
      EXPECT_TRUE(std::ranges::is_sorted(all, std::greater()));
      EXPECT_EQ(all.front(), largest_part(samples, world));
      EXPECT_LE(all.front() - all.back(), 1);
    }
}

TEST(PortionsTest, AreSamplesOfABatch) {
  const Batch batch = TensorTree(at::arange(6));
  EXPECT_TRUE(samples_of(batch, 10, {0, 10, 6}).tensor().is_same(batch.tensor())) << "no view of the whole";
  EXPECT_TRUE(at::equal(samples_of(batch, 10, {1, 12, 3}).tensor(), at::arange(2, 5)));
}

}  // namespace
}  // namespace tutti
