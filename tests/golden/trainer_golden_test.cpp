#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <set>

#include "runtime/disk.h"
#include "tests/golden/trainer_case.h"

namespace tutti {
namespace {

constexpr int kUserError = 2;  // exit code

// Algorithms that draw once a batch, or less often, for all ranks.
const std::set<std::string> kDrawOnceABatch = {"ColOut", "CutOut", "GyroDropout", "ProgressiveResizing"};

bool draws_once_a_batch(const GoldenCase& c) {
  bool once = true;
  for (int i = 0; c.has("algo" + std::to_string(i) + ".name"); ++i)
    once &= kDrawOnceABatch.contains(c.text("algo" + std::to_string(i) + ".name"));
  return once;
}

// Why two ranks do not do what Composer's one does, or "".
std::string reason_against_two_ranks(const GoldenCase& c) {
  if (c.has("error")) return "what is refused needs no second rank";
  if (c.holds("in/draws") && !draws_once_a_batch(c)) return "a rank draws for its own samples";
  if (c.text("arch").find("BatchNorm") != std::string::npos)
    return "batch normalisation sees a rank's part of a batch";
  return "";
}

void train_by_command(const GoldenCase& c, const std::string& launcher) {
  const CaseFiles files(c, Manner::kComposers);
  const std::string said = files.run("said"), run = files.run("run");
  const std::string command = launcher + TUTTI_BUILD_DIR "/tutti train " + files.recipe() + " --run-dir " +
                              run + " > " + said + " 2>&1 < /dev/null";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status)) << c.title();
  ASSERT_EQ(WEXITSTATUS(status), c.has("error") ? kUserError : 0) << c.title() << "\n" << read_text(said);
  if (!c.has("error")) expect_golden(c, run);
}

class GoldenTrainer : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (waits_for_algorithms(case_)) GTEST_SKIP() << "its algorithms are not built yet";
  }

  GoldenCase case_{golden_path(kTrainerFile), GetParam()};
};

TEST_P(GoldenTrainer, TrainsAsComposerDoes) { train_here(case_, Manner::kComposers, 1); }

TEST_P(GoldenTrainer, TheCommandTrainsAsComposerDoes) {
  if (case_.holds("in/draws")) GTEST_SKIP() << "a command draws its own numbers";
  train_by_command(case_, "");
}

// In one process: tests/runs/same_bits_test.py compares that with mpirun.
TEST_P(GoldenTrainer, TwoRanksTrainAsComposerDoes) {
  if (const std::string reason = reason_against_two_ranks(case_); !reason.empty()) GTEST_SKIP() << reason;
  train_here(case_, Manner::kComposers, 2);
}

// Every fourth of those that two ranks can train.
std::vector<std::string> cases_under_mpirun() {
  std::vector<std::string> chosen;
  int found = 0;
  for (const std::string& name : golden_cases(golden_path(kTrainerFile))) {
    const GoldenCase c(golden_path(kTrainerFile), name);
    if (c.holds("in/draws") || !reason_against_two_ranks(c).empty() || waits_for_algorithms(c)) continue;
    if (found++ % 4 == 0) chosen.push_back(name);
  }
  return chosen;
}

class GoldenTrainerUnderMpirun : public GoldenTrainer {};

TEST_P(GoldenTrainerUnderMpirun, TwoRanksTrainAsComposerDoes) {
  train_by_command(case_, TUTTI_SOURCE_DIR "/tools/mpirun.sh -np 2 ");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTrainer, testing::ValuesIn(golden_cases(golden_path(kTrainerFile))),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(All, GoldenTrainerUnderMpirun, testing::ValuesIn(cases_under_mpirun()),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenTrainer);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenTrainerUnderMpirun);

}  // namespace
}  // namespace tutti
