#include "data/split/held_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "recipe/wrong_key.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

int64_t count_of(const std::vector<bool>& marks) { return std::ranges::count(marks, true); }

std::map<int64_t, int64_t> held_out_by_kind(const std::vector<int64_t>& kinds,
                                            const std::vector<bool>& marks) {
  std::map<int64_t, int64_t> counts;
  for (std::size_t i = 0; i < kinds.size(); ++i) counts[kinds[i]] += marks[i];
  return counts;
}

TEST(HeldOut, AsManySamplesAsTheShareOrTheNumberSays) {
  EXPECT_EQ(count_of(held_out_samples({.samples = 1000, .held_out = 0.1})), 100);
  EXPECT_EQ(count_of(held_out_samples({.samples = 15, .held_out = 0.1})), 2);
  EXPECT_EQ(count_of(held_out_samples({.samples = 15, .held_out = 7})), 7);
}

TEST(HeldOut, SeedDeterminesTheSamples) {
  const auto drawn = [](uint64_t seed) {
    return held_out_samples({.samples = 100, .held_out = 0.3, .seed = seed});
  };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
}

// 90, 6, 3 and 1 samples: a fifth of each, 18, 1.2, 0.6 and 0.2, by largest remainder.
TEST(HeldOut, ClassesKeepTheirShares) {
  std::vector<int64_t> classes(90, 7);
  classes.insert(classes.end(), 6, -100);
  classes.insert(classes.end(), 3, 2);
  classes.push_back(5);
  for (const uint64_t seed : {1, 2, 3}) {
    const auto marks = held_out_samples({.samples = 100, .held_out = 0.2, .seed = seed, .classes = classes});
    const auto counts = held_out_by_kind(classes, marks);
    EXPECT_EQ(counts, (std::map<int64_t, int64_t>{{7, 18}, {-100, 1}, {2, 1}, {5, 0}}));
  }
}

// Half a sample of each of 100 classes.
TEST(HeldOut, ClassesOfEqualRemaindersAreDrawn) {
  std::vector<int64_t> classes;
  for (int64_t i = 0; i < 500; ++i) classes.push_back(i % 100);
  for (const uint64_t seed : {1, 2, 3}) {
    const auto marks = held_out_samples({.samples = 500, .held_out = 0.1, .seed = seed, .classes = classes});
    EXPECT_EQ(count_of(marks), 50);
    int64_t first_half = 0;
    for (const auto& [name, count] : held_out_by_kind(classes, marks)) {
      EXPECT_LE(count, 1) << name;
      first_half += name < 50 ? count : 0;
    }
    EXPECT_GT(first_half, 10);
    EXPECT_LT(first_half, 40);
  }
}

TEST(HeldOut, LastSampleOfAClassIsTrainedOn) {
  std::vector<int64_t> classes(20, 1);
  classes[7] = 2;
  for (const uint64_t seed : {1, 2, 3}) {
    const auto marks = held_out_samples({.samples = 20, .held_out = 0.6, .seed = seed, .classes = classes});
    EXPECT_EQ(count_of(marks), 12);
    EXPECT_FALSE(marks[7]);
  }
}

// A fifth of 2 is none for each class, and of all 20 samples 4.
TEST(HeldOut, SmallClassesFillTheNumber) {
  std::vector<int64_t> classes;
  for (int64_t i = 0; i < 20; ++i) classes.push_back(i / 2);
  const auto marks = held_out_samples({.samples = 20, .held_out = 0.2, .classes = classes});
  EXPECT_EQ(count_of(marks), 4);
  for (const auto& [name, count] : held_out_by_kind(classes, marks)) EXPECT_LE(count, 1) << name;
}

TEST(HeldOut, ClassesOfOneSampleEachDoNotCount) {
  std::vector<int64_t> classes;
  for (int64_t i = 0; i < 20; ++i) classes.push_back(i);
  EXPECT_EQ(count_of(held_out_samples({.samples = 20, .held_out = 0.2, .classes = classes})), 4);
}

TEST(HeldOut, GroupsStayWhole) {
  std::vector<int64_t> groups;
  for (int64_t i = 0; i < 120; ++i) groups.push_back(i % 13);
  for (const uint64_t seed : {1, 2, 3}) {
    const auto marks = held_out_samples({.samples = 120, .held_out = 0.25, .seed = seed, .groups = groups});
    EXPECT_GT(count_of(marks), 15);
    EXPECT_LE(count_of(marks), 30);
    for (const auto& [group, count] : held_out_by_kind(groups, marks))
      EXPECT_TRUE(count == 0 || count == std::ranges::count(groups, group)) << group;
  }
}

TEST(HeldOut, SmallestGroupIsHeldOutWhereNoneFits) {
  const auto marks = held_out_samples({.samples = 5, .held_out = 0.2, .groups = {1, 1, 1, 2, 2}});
  EXPECT_EQ(marks, (std::vector<bool>{false, false, false, true, true}));
}

TEST(HeldOut, EmptyPartsAreRefused) {
  const auto why = [](const SplitRequest& request) {
    return message_of<WrongKey>([&] { held_out_samples(request); });
  };
  EXPECT_THAT(why({.samples = 4, .held_out = 0.1}), HasSubstr("of 4 samples that is none"));
  EXPECT_THAT(why({.samples = 4, .held_out = 4}), HasSubstr("none is left to train on"));
  EXPECT_THAT(why({.samples = 4, .held_out = 0.5, .groups = {3, 3, 3, 3}}),
              HasSubstr("all samples have one value"));
}

TEST(HeldOut, NeighboursAreBlocks) {
  const auto groups = groups_of_neighbours(1000, 0.16);
  const auto marks = held_out_samples({.samples = 1000, .held_out = 0.16, .groups = groups});
  EXPECT_EQ(count_of(marks), 160);
  int64_t edges = 0;
  for (std::size_t i = 1; i < marks.size(); ++i) edges += marks[i] != marks[i - 1];
  EXPECT_LE(edges, 16);
}

}  // namespace
}  // namespace tutti
