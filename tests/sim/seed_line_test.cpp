#include "sim/seed_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "sim/seed_farm.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SeedResult sample() {
  SeedResult result;
  result.seed = 17;
  result.weights = UINT64_MAX;
  result.deliveries = 2;
  result.next_draw = 3;
  result.starts = 4;
  result.rank_steps = 5;
  result.faults = {{"death", 1}, {"hang", 2}};
  result.findings = {"one", "two\tthings\nhappened"};
  result.story = {"start 1: well"};
  return result;
}

TEST(SeedLineTest, ReadsBackWhatItWrote) {
  const auto read = parse_seed_line(seed_line(sample()));
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->same_run(sample()));
  EXPECT_EQ(read->seed, 17u);
  EXPECT_EQ(read->starts, 4);
  EXPECT_EQ(read->rank_steps, 5);
  EXPECT_THAT(read->findings, ElementsAre("one", "two things happened"));
  EXPECT_EQ(parse_begin_line(begin_line(9)), 9u);
}

TEST(SeedLineTest, OtherLinesAreOtherLines) {
  for (const char* line : {"", "warning: something", "tutti-seed-result\t1"}) {
    EXPECT_FALSE(parse_seed_line(line)) << line;
    EXPECT_FALSE(parse_begin_line(line)) << line;
  }
}

// Farms the seeds out to a shell that "simulates" each of its own with `body`.
std::vector<std::string> farmed(const std::string& body, int jobs) {
  std::map<uint64_t, std::string> seen;
  farm_seeds(
      1, 5, jobs,
      [&](const SeedShare& share) -> std::vector<std::string> {
        const std::string loop = "for s in $(seq " + std::to_string(share.first) + " " +
                                 std::to_string(share.stride) + " " + std::to_string(share.last) +
                                 "); do printf 'tutti-seed-begins\\t%d\\n' $s; " + body +
                                 "; printf 'tutti-seed-result\\t%d\\t1\\t2\\t3\\t1\\t6\\t\\t\\t\\n' $s; done";
        return {"/bin/sh", "-c", loop};
      },
      [&](const SeedResult& result) {
        seen[result.seed] = result.findings.empty() ? "well" : result.findings[0];
      });
  std::vector<std::string> all;
  for (const auto& [seed, what] : seen) all.push_back(std::to_string(seed) + " " + what);
  return all;
}

TEST(SeedFarmTest, EverySeedIsSimulatedOnce) {
  for (const int jobs : {1, 2, 9})
    EXPECT_THAT(farmed(":", jobs), ElementsAre("1 well", "2 well", "3 well", "4 well", "5 well"));
}

TEST(SeedFarmTest, ASeedThatEndsItsProcessIsNamedAndTheOthersGoOn) {
  EXPECT_THAT(farmed("test $s != 3 || kill -SEGV $$", 2),
              ElementsAre("1 well", "2 well", HasSubstr("3 the process was ended by Segmentation fault"),
                          "4 well", "5 well"));
  EXPECT_THAT(
      farmed("test $s != 5 || exit 7", 1),
      ElementsAre("1 well", "2 well", "3 well", "4 well", HasSubstr("5 the process ended with exit code 7")));
}

TEST(SeedFarmTest, AProcessThatCannotStartIsAnError) {
  EXPECT_THROW(farm_seeds(
                   1, 2, 1, [](const SeedShare&) { return std::vector<std::string>{"/bin/false"}; },
                   [](const SeedResult&) {}),
               OperatingError);
}

}  // namespace
}  // namespace tutti
