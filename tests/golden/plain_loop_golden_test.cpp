#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "runtime/disk.h"
#include "tests/golden/trainer_case.h"

namespace tutti {
namespace {

constexpr int kNoModules = 77, kNoProgram = 127;  // exit codes

// Names of further cases, which the script makes of this folder's.
std::vector<std::string> more_cases() {
  if (!is_own_folder()) return {};
  return {"adam_with_amsgrad",   "dampened_momentum",   "duration_in_samples",      "everything_at_once",
          "mixed_smooth_labels", "nesterov_momentum",   "first_algorithm_not_last", "sam_over_nesterov",
          "schedule_by_epoch",   "swa_to_its_own_rate", "torch_schedule",           "warmup_that_is_scaled"};
}

std::vector<std::string> all_cases() {
  std::vector<std::string> names = golden_cases(golden_path(kTrainerFile));
  for (const std::string& name : more_cases()) names.push_back(name);
  return names;
}

// The cases of trainer.h5 as plain_loop.py trains them: all at once, since importing torch takes seconds.
class PlainLoops {
 public:
  PlainLoops() {
    std::string command = "'" TUTTI_TORCH_PYTHON "' -B '" TUTTI_SOURCE_DIR "/tests/golden/plain_loop.py' '" +
                          golden_path(kTrainerFile) + "' '" + results() + "'";
    for (const std::string& name : more_cases()) command += " " + name;
    command += " > '" + said() + "' 2>&1 < /dev/null";
    const int status = std::system(command.c_str());
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  bool have_python() const { return exit_code_ != kNoModules && exit_code_ != kNoProgram; }
  bool done() const { return exit_code_ == 0; }
  std::string results() const { return folder_.path("trainer.h5"); }
  std::string said() const { return folder_.path("said"); }

 private:
  Scratch folder_;
  int exit_code_ = 0;
};

bool waits(const std::string& name) {
  return name.starts_with("case_") && waits_for_algorithms({golden_path(kTrainerFile), name});
}

// Under tutti's own defaults, not [compat].
class PlainLoop : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { loops_ = std::make_unique<PlainLoops>(); }
  static void TearDownTestSuite() { loops_.reset(); }

  static inline std::unique_ptr<PlainLoops> loops_;
};

TEST_P(PlainLoop, TrainsAsPyTorchDoes) {
  if (waits(GetParam())) GTEST_SKIP() << "its algorithms are not built yet";
  if (!loops_->have_python()) GTEST_SKIP() << kNoPython;
  ASSERT_TRUE(loops_->done()) << read_text(loops_->said());
  const GoldenCase c(loops_->results(), GetParam());
  if (c.has("skipped")) GTEST_SKIP() << c.text("skipped");
  ASSERT_FALSE(c.has("failed")) << c.title() << "\n" << c.text("failed");
  train_here(c, Manner::kTuttis, 1);
}

INSTANTIATE_TEST_SUITE_P(All, PlainLoop, testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PlainLoop);

}  // namespace
}  // namespace tutti
