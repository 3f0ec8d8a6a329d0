#include "actors/supervisor/checkpoint_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/io/checkpoint/sample_checkpoint.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class LinesLog final : public Log {
 public:
  void write(LogLevel, const std::string& line) override { lines.push_back(line); }
  void flush() override {}

  std::vector<std::string> lines;
};

Setting resume(const std::string& text) { return Setting(text, "checkpoint.resume", {"digits.toml", 7}); }

class CheckpointStoreTest : public testing::Test {
 protected:
  CheckpointStore store(int keep = -1) {
    job_.checkpoints = folder_;
    settings_.keep = keep;
    return CheckpointStore(disk_, log_, job_);
  }
  std::string chosen(const Setting& resume) { return choice(resume).folder; }
  CheckpointStore::Choice choice(const Setting& resume, const Setting& load_path = {}) {
    const bool is_auto = !resume.is_none() && resume.text() == "auto";
    const StartFrom from{is_auto ? resume : Setting(), is_auto ? load_path : resume, {}};
    auto own = store();
    auto chosen = own.choose(from);
    for (std::string damage; !(damage = damage_of(chosen.folder)).empty(); chosen = own.choose(from))
      own.reject(chosen.folder, damage);
    return chosen;
  }
  // The ranks' choice.
  std::string damage_of(const std::string& folder) try {
    if (!folder.empty()) verify_files(disk_, open_checkpoint(disk_, folder));
    return "";
  } catch (const OperatingError& error) {
    return error.what();
  }

  std::string publish(CheckpointStore& store, const std::string& name) {
    const std::string unfinished = folder_ + "/." + name + "-1";
    CheckpointManifest manifest;
    manifest.files.push_back(write_rank_file(disk_, unfinished, 0, pieces_of(tensors_, 0, 1)));
    RunState state;
    state.run_name = run_name_;
    state.time.batch = ++step_;
    if (!run_name_.empty()) manifest.state = state.to_json();
    return store.publish(name, unfinished, manifest);
  }

  void publish_all(const std::vector<std::string>& names) {
    auto all = store();
    for (const auto& name : names) EXPECT_EQ(publish(all, name), "");
  }

  std::vector<std::string> names() const { return disk_.list(folder_); }

  Scratch scratch_;
  PosixDisk disk_;
  LinesLog log_;
  Job job_;
  CheckpointSettings& settings_ = job_.settings.checkpoint;
  int64_t step_ = 0;  // of the newest
  std::string run_name_;
  std::string folder_ = scratch_.path("checkpoints");
  std::map<std::string, at::Tensor> tensors_ = {{"model/a", at::arange(6, at::kFloat)}};
};

TEST_F(CheckpointStoreTest, StartsAfreshWhereThereIsNothing) {
  EXPECT_EQ(chosen(Setting()), "");
  EXPECT_EQ(chosen(resume("auto")), "");
  EXPECT_TRUE(log_.lines.empty());
}

TEST_F(CheckpointStoreTest, ResumesFromTheNewestOrTheOneThatIsNamed) {
  publish_all({"ep1-ba10", "ep2-ba20"});
  EXPECT_EQ(chosen(resume("auto")), folder_ + "/ep2-ba20");
  EXPECT_EQ(chosen(resume(folder_ + "/ep1-ba10")), folder_ + "/ep1-ba10");
  EXPECT_THAT(names(), ElementsAre("ep1-ba10", "ep2-ba20", "latest"));
}

TEST_F(CheckpointStoreTest, ARunsOwnComesBeforeTheOneToLoadFrom) {
  const std::string elsewhere = scratch_.path("elsewhere/ep5-ba50");
  write_checkpoint(disk_, elsewhere, tensors_, 1);
  EXPECT_EQ(choice(resume("auto"), resume(elsewhere)).folder, elsewhere);
  EXPECT_FALSE(choice(resume("auto"), resume(elsewhere)).own);
  publish_all({"ep1-ba10"});
  EXPECT_EQ(choice(resume("auto"), resume(elsewhere)).folder, folder_ + "/ep1-ba10");
  EXPECT_TRUE(choice(resume("auto"), resume(elsewhere)).own);
}

TEST_F(CheckpointStoreTest, AnotherRunsAreAnErrorUntilTheUserSaysOverwrite) {
  job_.settings.run_name = "mine";
  settings_.save_overwrite = Setting(false, "checkpoint.save_overwrite", {"digits.toml", 8});
  run_name_ = "theirs";
  publish_all({"ep1-ba10"});
  for (const Setting& from : {Setting(), resume("auto"), resume(folder_)}) {
    const auto why = message_of<UserError>([&] { chosen(from); });
    EXPECT_THAT(why,
                StartsWith("digits.toml:8: checkpoint.save_overwrite = false: " + folder_ + "/ep1-ba10"));
    EXPECT_THAT(why, HasSubstr("is of the run \"theirs\", and this one is \"mine\""));
  }
  settings_.save_overwrite.value = true;
  EXPECT_EQ(chosen(Setting()), "");
  EXPECT_EQ(chosen(resume("auto")), "");
  store().begin("");
  EXPECT_THAT(names(), ElementsAre("earlier"));
}

TEST_F(CheckpointStoreTest, RunsOfDifferentNamesShareAFolder) {
  job_.settings.run_name = "theirs";
  settings_.set = {CheckpointNames("{run_name}-ba{batch}", "theirs"), "newest-theirs"};
  publish_all({"theirs-ba50"});
  job_.settings.run_name = "mine";
  settings_.set = {CheckpointNames("{run_name}-ba{batch}", "mine"), "newest-mine"};
  settings_.save_overwrite = Setting(false, "checkpoint.save_overwrite", {});
  EXPECT_EQ(chosen(resume("auto")), "");
  disk_.make_folders(folder_ + "/.theirs-ba60-77");
  store(1).begin("");
  auto mine = store(1);
  for (const char* name : {"mine-ba10", "mine-ba20"}) EXPECT_EQ(publish(mine, name), "");
  EXPECT_THAT(names(),
              ElementsAre(".theirs-ba60-77", "mine-ba20", "newest-mine", "newest-theirs", "theirs-ba50"));
  EXPECT_EQ(std::filesystem::read_symlink(folder_ + "/newest-mine"), "mine-ba20");
  EXPECT_EQ(chosen(resume("auto")), folder_ + "/mine-ba20");
}

TEST_F(CheckpointStoreTest, TheCheckpointResumedFromOutlivesTheTraining) {
  run_name_ = job_.settings.run_name = "mine";
  publish_all({"ep0-ba1", "ep0-ba2"});
  CheckpointStore second = store(2);
  second.begin(folder_ + "/ep0-ba2");
  for (const char* name : {"ep0-ba3", "ep0-ba4", "ep0-ba5"}) EXPECT_EQ(publish(second, name), "");
  EXPECT_THAT(names(), ElementsAre("ep0-ba2", "ep0-ba4", "ep0-ba5", "latest"));
  CheckpointStore third = store(2);
  third.begin(folder_ + "/ep0-ba4");
  for (const char* name : {"ep0-ba6", "ep0-ba7"}) EXPECT_EQ(publish(third, name), "");
  EXPECT_THAT(names(), ElementsAre("earlier", "ep0-ba4", "ep0-ba6", "ep0-ba7", "latest"));
}

TEST_F(CheckpointStoreTest, NoLinkWhereNoneIsWanted) {
  settings_.set.latest = "";
  publish_all({"ep1-ba10", "ep2-ba20"});
  EXPECT_THAT(names(), ElementsAre("ep1-ba10", "ep2-ba20"));
  store().begin(folder_ + "/ep1-ba10");
  EXPECT_THAT(names(), ElementsAre("earlier", "ep1-ba10"));
  EXPECT_EQ(chosen(resume("auto")), folder_ + "/ep1-ba10");
}

TEST_F(CheckpointStoreTest, ADamagedCheckpointIsNamedAndAnOlderUsed) {
  publish_all({"ep1-ba10", "ep2-ba20"});
  flip_bit(folder_ + "/ep2-ba20/rank-0.h5", 100);
  EXPECT_EQ(chosen(resume("auto")), folder_ + "/ep1-ba10");
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("ignored: " + folder_ + "/ep2-ba20/rank-0.h5")));
}

TEST_F(CheckpointStoreTest, DamagedCheckpointsAreNamedOnceEach) {
  publish_all({"ep1-ba10", "ep2-ba20", "ep3-ba30"});
  for (const char* name : {"/ep2-ba20", "/ep3-ba30"}) flip_bit(folder_ + name + "/rank-0.h5", 100);
  EXPECT_EQ(chosen(resume(folder_)), folder_ + "/ep1-ba10");
  EXPECT_THAT(log_.lines, ElementsAre(HasSubstr("ep3-ba30/rank-0.h5"), HasSubstr("ep2-ba20/rank-0.h5")));
}

TEST_F(CheckpointStoreTest, ADamagedCheckpointNamedByASettingIsItsMistake) {
  publish_all({"ep1-ba10", "ep2-ba20"});
  const std::string named = folder_ + "/ep2-ba20";
  flip_bit(named + "/rank-0.h5", 100);
  EXPECT_THAT(
      message_of<UserError>([&] { chosen(resume(named)); }),
      StartsWith("digits.toml:7: checkpoint.resume = \"" + named + "\": " + named + "/rank-0.h5: corrupt"));
}

TEST_F(CheckpointStoreTest, NamesTheSettingThatNamesNoCheckpoint) {
  const auto why = message_of<UserError>([this] { chosen(resume("nowhere")); });
  EXPECT_THAT(why, StartsWith("digits.toml:7: checkpoint.resume = \"nowhere\": there is no such folder"));
}

TEST_F(CheckpointStoreTest, StartingAfreshPutsThoseOfTheEarlierRunAside) {
  publish_all({"ep1-ba10", "ep2-ba20"});
  store().begin("");
  EXPECT_THAT(names(), ElementsAre("earlier"));
  EXPECT_THAT(disk_.list(folder_ + "/earlier"), ElementsAre("ep1-ba10", "ep2-ba20"));
  EXPECT_EQ(chosen(resume("auto")), "");
}

TEST_F(CheckpointStoreTest, CheckpointsPutAsideOutliveFurtherAttempts) {
  for (const char* name : {"ep1-ba10", "ep1-ba5", "ep1-ba7"}) {
    publish_all({name});
    store().begin("");
  }
  EXPECT_THAT(names(), ElementsAre("earlier", "earlier-2", "earlier-3"));
  EXPECT_EQ(chosen(resume(folder_ + "/earlier")), folder_ + "/earlier/ep1-ba10");
  EXPECT_EQ(chosen(resume(folder_ + "/earlier-2")), folder_ + "/earlier-2/ep1-ba5");
  EXPECT_THAT(log_.lines.back(), HasSubstr("are now in " + folder_ + "/earlier-3"));
}

TEST_F(CheckpointStoreTest, ResumingFromAnOwnEarlierCheckpointPutsLaterOnesAside) {
  publish_all({"ep1-ba10", "ep2-ba20", "ep3-ba30"});
  store().begin(folder_ + "/ep1-ba10");
  EXPECT_THAT(names(), ElementsAre("earlier", "ep1-ba10", "latest"));
  EXPECT_THAT(disk_.list(folder_ + "/earlier"), ElementsAre("ep2-ba20", "ep3-ba30"));
  EXPECT_EQ(chosen(resume("auto")), folder_ + "/ep1-ba10");
}

TEST_F(CheckpointStoreTest, ResumingFromAnotherFolderPutsAllAside) {
  publish_all({"ep1-ba10", "ep2-ba20"});
  store().begin("");
  tensors_["model/a"] += 1;
  publish_all({"ep1-ba10"});
  store().begin(folder_ + "/earlier/ep1-ba10");
  EXPECT_THAT(names(), ElementsAre("earlier", "earlier-2"));
}

TEST_F(CheckpointStoreTest, ACheckpointWithoutManifestIsNotInTheWay) {
  publish_all({"ep1-ba10", "ep2-ba20", "ep3-ba30"});
  disk_.remove_all(folder_ + "/ep1-ba10/manifest.json");
  store().begin(folder_ + "/ep2-ba20");
  EXPECT_EQ(disk_.list(folder_ + "/earlier"), std::vector<std::string>{"ep3-ba30"});
  EXPECT_EQ(chosen(resume("auto")), folder_ + "/ep2-ba20");
}

TEST_F(CheckpointStoreTest, RemainsOfAKilledWriterAreRemoved) {
  publish_all({"ep1-ba10"});
  disk_.make_folders(folder_ + "/.ep2-ba20-77");
  store().begin(folder_ + "/ep1-ba10");
  EXPECT_THAT(names(), ElementsAre("ep1-ba10", "latest"));
}

TEST_F(CheckpointStoreTest, KeepsAsManyAsAsked) {
  auto two = store(2);
  for (const char* name : {"ep1-ba9", "ep1-ba10", "ep2-ba100"}) EXPECT_EQ(publish(two, name), "");
  EXPECT_THAT(names(), ElementsAre("ep1-ba10", "ep2-ba100", "latest"));
}

TEST_F(CheckpointStoreTest, KeepsTheNewestEvenWhenAskedToKeepNone) {
  auto none = store(0);
  for (const char* name : {"ep1-ba10", "ep2-ba20"}) EXPECT_EQ(publish(none, name), "");
  EXPECT_THAT(names(), ElementsAre("ep2-ba20", "latest"));
}

TEST_F(CheckpointStoreTest, ThePublishedCheckpointOutlivesLaterDamagedOnes) {
  publish_all({"ep1-ba10", "ep2-ba20", "ep3-ba30"});
  flip_bit(folder_ + "/ep3-ba30/rank-0.h5", 100);
  auto one = store(1);
  EXPECT_EQ(chosen(resume("auto")), folder_ + "/ep2-ba20");
  EXPECT_EQ(publish(one, "ep3-ba25"), "");
  EXPECT_EQ(chosen(resume("auto")), folder_ + "/ep3-ba25");
}

TEST_F(CheckpointStoreTest, SaysWhatWentWrongAndKeepsTheOnesBefore) {
  publish_all({"ep1-ba10"});
  auto one = store(1);
  EXPECT_THAT(one.publish("ep2-ba20", folder_ + "/.never-written", {}), HasSubstr(".never-written"));
  EXPECT_EQ(chosen(resume("auto")), folder_ + "/ep1-ba10");
}

}  // namespace
}  // namespace tutti
