#include "sim/simulate/seed_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/runtime/scratch.h"

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
  result.attempts = 4;
  result.rank_steps = 5;
  result.faults = {{"death", 1}, {"hang", 2}};
  result.findings = {"one", "two\tfaults\nhappened"};
  result.summary = {"attempt 1: well"};
  result.probes = {"sample: two states"};
  return result;
}

TEST(SeedWireTest, ReadsBackWhatItWrote) {
  const auto read = parse_result_line(result_line(sample()));
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->same_run(sample()));
  EXPECT_EQ(read->seed, 17u);
  EXPECT_EQ(read->attempts, 4);
  EXPECT_EQ(read->rank_steps, 5);
  EXPECT_THAT(read->findings, ElementsAre("one", "two faults happened"));
  EXPECT_THAT(read->probes, ElementsAre("sample: two states"));
  EXPECT_EQ(parse_begin_line(begin_line(9)), 9u);
  for (const EndKind kind : {EndKind::kUserError, EndKind::kOutOfMemoryElsewhere}) {
    const auto why = parse_refusal_line(refusal_line(RunError(kind, "a.toml:3: there\tis none")));
    ASSERT_TRUE(why);
    EXPECT_EQ(why->kind(), kind);
    EXPECT_STREQ(why->what(), "a.toml:3: there is none");
  }
}

TEST(SeedWireTest, OtherLinesAreOtherLines) {
  for (const std::string& line : {std::string(), std::string("warning: something"),
                                  std::string("tutti-seed-result\t1"), heartbeat_line()}) {
    EXPECT_FALSE(parse_result_line(line)) << line;
    EXPECT_FALSE(parse_begin_line(line)) << line;
    EXPECT_FALSE(parse_refusal_line(line)) << line;
  }
}

// A shell that "simulates" seeds $first, $first + stride, ...: what it does before all, for each, $s, and
// behind all.
struct SeedScript {
  std::string before = ":";
  std::string body = ":";
  std::string after = ":";

  std::vector<std::string> command(const SeedShare& share) const {
    const std::string first = std::to_string(share.first);
    const std::string loop =
        "for s in $(seq " + first + " " + std::to_string(share.stride) + " " + std::to_string(share.last) +
        "); do printf 'tutti-seed-begins\\t%d\\n' $s; " + body +
        "; printf 'tutti-seed-result\\t%d\\t1\\t2\\t3\\t1\\t6\\t\\t\\t\\t\\t\\n' $s; done";
    return {"/bin/sh", "-c", "first=" + first + "; " + before + "; " + loop + "; " + after};
  }
};

// The results of seeds 1 to 5, each reported once.
std::vector<std::string> farmed(const SeedScript& script, int jobs, Nanoseconds timeout = kSeedTimeout) {
  std::map<uint64_t, std::string> seen;
  simulate_seeds(
      1, 5, jobs, [&](const SeedShare& share) { return script.command(share); },
      [&](const SeedResult& result) {
        seen[result.seed] += result.findings.empty() ? "well" : result.findings[0];
      },
      timeout);
  std::vector<std::string> all;
  for (const auto& [seed, what] : seen) all.push_back(std::to_string(seed) + " " + what);
  return all;
}

TEST(SeedWorkersTest, EverySeedIsSimulatedOnce) {
  for (const int jobs : {1, 2, 9})
    EXPECT_THAT(farmed({}, jobs), ElementsAre("1 well", "2 well", "3 well", "4 well", "5 well"));
}

TEST(SeedWorkersTest, ASeedThatEndsItsProcessIsNamedAndTheOthersContinue) {
  EXPECT_THAT(farmed({.body = "test $s != 3 || kill -SEGV $$"}, 2),
              ElementsAre("1 well", "2 well", HasSubstr("3 the process was ended by Segmentation fault"),
                          "4 well", "5 well"));
  EXPECT_THAT(
      farmed({.body = "test $s != 5 || exit 7"}, 1),
      ElementsAre("1 well", "2 well", "3 well", "4 well", HasSubstr("5 the process ended with exit code 7")));
}

TEST(SeedWorkersTest, ALineCutShortByADyingProcessSpoilsNoOther) {
  EXPECT_THAT(farmed({.body = "test $s -lt 3 || { printf 'tutti-seed-'; kill -SEGV $$; }"}, 1),
              ElementsAre("1 well", "2 well", "3 the process was ended by Segmentation fault",
                          "4 the process was ended by Segmentation fault",
                          "5 the process was ended by Segmentation fault"));
}

TEST(SeedWorkersTest, AProcessThatEndsBeforeItsFirstSeedCostsThatOne) {
  EXPECT_THAT(farmed({.before = "test $first != 2 || exit 9"}, 2),
              ElementsAre("1 well", "2 the process ended with exit code 9, before the seed began", "3 well",
                          "4 well", "5 well"));
}

TEST(SeedWorkersTest, AProcessThatEndsBadlyBehindItsLastSeedIsAFindingOfThat) {
  EXPECT_THAT(farmed({.after = "test $first != 2 || kill -SEGV $$"}, 2),
              ElementsAre("1 well", "2 well", "3 well",
                          "4 the process was ended by Segmentation fault, after its last seed", "5 well"));
  EXPECT_THAT(farmed({.after = "exit 3"}, 1),
              ElementsAre("1 well", "2 well", "3 well", "4 well",
                          "5 the process ended with exit code 3, after its last seed"));
}

constexpr Nanoseconds kShortPatience = std::chrono::seconds(2);

TEST(SeedWorkersTest, ASeedThatNeverEndsIsKilledAndNamedAndTheOthersContinue) {
  EXPECT_THAT(farmed({.body = "test $s != 3 || while :; do :; done"}, 2, kShortPatience),
              ElementsAre("1 well", "2 well", "3 the process printed nothing for 2 s and was killed",
                          "4 well", "5 well"));
}

TEST(SeedWorkersTest, AProcessThatNeverComesToItsFirstSeedIsKilledToo) {
  EXPECT_THAT(
      farmed({.before = "test $first != 2 || while :; do :; done"}, 2, kShortPatience),
      ElementsAre("1 well", "2 the process printed nothing for 2 s and was killed, before the seed began",
                  "3 well", "4 well", "5 well"));
}

// On a busy machine the others may wait for seconds until it is their turn.
TEST(SeedWorkersTest, ASeedMayTakeLongAsLongAsItSaysThatItContinues) {
  constexpr Nanoseconds kPatience = std::chrono::seconds(5);
  const std::string slow =
      "end=$(($(date +%s) + 8)); test $s != 2 || while test $(date +%s) -lt $end; do sleep 0.2; echo " +
      heartbeat_line() + "; done";
  EXPECT_THAT(farmed({.body = slow}, 2, kPatience),
              ElementsAre("1 well", "2 well", "3 well", "4 well", "5 well"));
}

TEST(SeedWorkersTest, AJobThatCannotStartIsRefusedOnce) {
  const auto refuses = [](const RunError& why) {
    return "printf '%s\\n' '" + refusal_line(why) + "'; exit 2";
  };
  const UserError wrong("a.toml:3: there is none");
  const RunError lacking(EndKind::kOutOfMemoryElsewhere, "out of memory");
  for (const int jobs : {1, 3}) {
    EXPECT_EQ(message_of<UserError>([&] { farmed({.before = refuses(wrong)}, jobs); }), wrong.what());
    try {
      farmed({.before = refuses(lacking)}, jobs);
      ADD_FAILURE() << "it was farmed";
    } catch (const RunError& error) {
      EXPECT_EQ(error.kind(), lacking.kind());
    }
  }
}

TEST(SeedWorkersTest, AProcessThatCannotStartIsAnError) {
  EXPECT_THROW(simulate_seeds(
                   1, 2, 1, [](const SeedShare&) { return std::vector<std::string>{"/bin/false"}; },
                   [](const SeedResult&) {}),
               OperatingError);
}

}  // namespace
}  // namespace tutti
