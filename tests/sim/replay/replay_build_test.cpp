#include <gtest/gtest.h>

#include <string>

#include "commands/local_train.h"
#include "sim/replay/replay.h"
#include "tests/runtime/scratch.h"
#include "tests/sim/small_job.h"

namespace {

std::string commit_of_build;

}  // namespace

extern "C" const char* tutti_commit() { return commit_of_build.c_str(); }

namespace tutti {
namespace {

TEST(ReplayTest, AnotherBuildThanTheOneThatRecordedIsReported) {
  const Scratch folder;
  LocalRunOptions options;
  options.run_dir = folder.path("run");
  options.quiet = options.live = true;
  commit_of_build = "one";
  train_in_one_process(small_job(), options);
  const ReplayResult same = replay({.run_dir = options.run_dir});
  EXPECT_TRUE(same.same) << same.text;
  EXPECT_EQ(same.text.find("recorded by"), std::string::npos) << same.text;
  commit_of_build = "two";
  const ReplayResult other = replay({.run_dir = options.run_dir});
  EXPECT_TRUE(other.same) << other.text;
  EXPECT_NE(other.text.find("\nthe run was recorded by tutti, commit one, this is tutti, commit two: "),
            std::string::npos)
      << other.text;
}

}  // namespace
}  // namespace tutti
