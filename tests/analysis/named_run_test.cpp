#include "analysis/named_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

class NamedRunTest : public testing::Test {
 protected:
  std::string run(const std::string& name) const {
    const std::string folder = runs_ + '/' + name;
    fs::create_directories(folder);
    write_text(folder + "/recipe.toml", "");
    write_text(folder + "/metrics.jsonl", "");
    return folder;
  }
  void change(const std::string& file, int hours_ago) const {
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(hours_ago));
  }
  void checkpoint(const std::string& name, int step) const {
    fs::create_directories(checkpoints_ + '/' + name);
    write_text(
        checkpoints_ + '/' + name + "/manifest.json",
        R"({"manifest": {"files": [], "state": {"step": )" + std::to_string(step) + R"(, "epoch": 1}}})");
  }
  std::string named(const std::string& name) const {
    const std::string folder = named_checkpoint(checkpoints_, name);
    return folder.empty() ? "" : folder.substr(checkpoints_.size() + 1);
  }

  Scratch scratch_;
  std::string runs_ = scratch_.path("runs"), checkpoints_ = scratch_.path("checkpoints");
};

TEST_F(NamedRunTest, NewestRunHasTheNewestFile) {
  EXPECT_THROW(newest_run(runs_), UserError);
  for (const char* name : {"a", "b", "c"}) {
    const std::string folder = run(name);
    for (const char* file : {"recipe.toml", "metrics.jsonl"}) change(folder + '/' + file, 5);
  }
  fs::create_directories(runs_ + "/notes");  // newer, and no run
  write_text(runs_ + "/notes/recipe.toml", "");
  change(runs_ + "/b/metrics.jsonl", 2);
  change(runs_ + "/c/recipe.toml", 3);
  EXPECT_EQ(newest_run(runs_), runs_ + "/b");
  change(runs_ + "/a/recipe.toml", 1);
  EXPECT_EQ(newest_run(runs_), runs_ + "/a");
}

TEST_F(NamedRunTest, CheckpointIsNamedByItsBeginning) {
  checkpoint("ep30-ba900", 900);
  checkpoint("ep3-ba90", 90);
  checkpoint("ep4-ba100", 100);
  checkpoint("ep4-ba120", 120);
  EXPECT_THAT(checkpoint_names(checkpoints_),
              testing::ElementsAre("ep3-ba90", "ep4-ba100", "ep4-ba120", "ep30-ba900"));
  EXPECT_EQ(named("ep3"), "ep3-ba90");
  EXPECT_EQ(named("ep30"), "ep30-ba900");
  EXPECT_EQ(named("ep4-ba120"), "ep4-ba120");
  EXPECT_EQ(named("ep4-"), "") << "two begin so";
  EXPECT_EQ(named("ep5"), "");
  EXPECT_EQ(named(""), "");
}

TEST_F(NamedRunTest, BestIsALinkToOneOfTheCheckpoints) {
  checkpoint("ep3-ba90", 90);
  EXPECT_EQ(named("best"), "");
  fs::create_directory_symlink("ep3-ba90", checkpoints_ + "/best");
  EXPECT_EQ(named("best"), "ep3-ba90");
  fs::remove(checkpoints_ + "/best");
  fs::create_directory_symlink(runs_, checkpoints_ + "/best");
  EXPECT_EQ(named("best"), "") << "leads elsewhere";
}

}  // namespace
}  // namespace tutti
