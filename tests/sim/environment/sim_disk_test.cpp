#include "sim/environment/sim_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "io/replaced_file.h"
#include "runtime/error.h"
#include "tests/io/checkpoint/sample_checkpoint.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kFolder = "/simulated/run";

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class SimDiskTest : public testing::Test {
 protected:
  SimDiskTest() { view->make_folders(kFolder); }

  static std::string path(const std::string& name) { return std::string(kFolder) + "/" + name; }

  void write(const std::string& name, const std::string& content, bool sync) {
    const auto file = view->open(path(name), true);
    file->append(bytes(content));
    if (sync) file->sync();
  }

  // Everything that is found of the file over many power losses now; "-" when it is not there.
  std::set<std::string> survivors(const std::string& name) const {
    std::set<std::string> found;
    for (uint64_t seed = 0; seed < 300; ++seed) {
      const auto after = disk.after_power_loss(RandomKey(seed, "power"));
      const auto seen = after->view(0);
      found.insert(seen->exists(path(name)) ? text(seen->read(path(name))) : "-");
    }
    return found;
  }

  SimDisk disk;
  std::unique_ptr<Disk> view = disk.view(0);
};

TEST_F(SimDiskTest, ReadsWhatWasWrittenAndNothingReachesTheRealDisk) {
  write("a", "one two", false);
  const auto file = view->open(path("a"), false);
  file->append(bytes("!"));
  file->write_at(0, bytes("ONE"));
  EXPECT_EQ(text(view->read(path("a"))), "ONE two!");
  EXPECT_THAT(view->list(kFolder), ElementsAre("a"));
  EXPECT_FALSE(PosixDisk().exists("/simulated"));
}

TEST_F(SimDiskTest, UnknownFilesAreReadFromTheRealDisk) {
  const Scratch real;
  write_text(real.path("data"), "samples");
  EXPECT_EQ(text(view->read(real.path("data"))), "samples");
  EXPECT_THROW(view->open(real.path("data"), false), OperatingError);
  EXPECT_EQ(read_text(real.path("data")), "samples");
}

TEST_F(SimDiskTest, AMirroredFolderChangesInMemoryAlone) {
  const Scratch real;
  std::filesystem::create_directories(real.path("run/old"));
  write_text(real.path("run/old/file"), "before");
  write_text(real.path("run/log"), "one ");
  std::filesystem::create_symlink("old", real.path("run/latest"));
  std::filesystem::create_directories(real.path("archive"));
  write_text(real.path("archive/file"), "archived");
  std::filesystem::create_symlink("../archive", real.path("run/outside"));
  disk.mirror(real.path("run"));
  EXPECT_THAT(view->list(real.path("run")), ElementsAre("latest", "log", "old", "outside"));
  EXPECT_EQ(text(view->read(real.path("run/outside/file"))), "archived");
  EXPECT_EQ(text(view->read(real.path("run/latest/file"))), "before");
  EXPECT_FALSE(disk.wrote(real.path("run/old/file")));

  view->rename(real.path("run/old"), real.path("run/new"));
  EXPECT_FALSE(view->exists(real.path("run/old/file")));
  EXPECT_EQ(text(view->read_range(real.path("run/new/file"), 2, 4)), "fore");
  view->open(real.path("run/new/file"), true)->append(bytes("after"));
  view->open(real.path("run/log"), false)->append(bytes("two"));
  EXPECT_EQ(text(view->read(real.path("run/new/file"))), "after");
  EXPECT_EQ(text(view->read(real.path("run/log"))), "one two");
  EXPECT_TRUE(disk.wrote(real.path("run/new/file")));
  view->remove_all(real.path("run/new"));
  EXPECT_FALSE(view->exists(real.path("run/new")));
  EXPECT_THROW(view->read(real.path("run/old/file")), OperatingError);
  EXPECT_THAT(view->list(real.path("run/old")), IsEmpty());

  EXPECT_EQ(read_text(real.path("run/old/file")), "before");
  EXPECT_EQ(read_text(real.path("run/log")), "one ");
}

TEST_F(SimDiskTest, PathsGoThroughLinks) {
  view->make_folders(path("ep1"));
  write("ep1/manifest", "m", false);
  view->symlink("ep1", path("latest"));
  EXPECT_EQ(text(view->read(path("latest/manifest"))), "m");
  view->make_folders(path("ep2"));
  view->symlink("ep2", path("latest"));
  EXPECT_FALSE(view->exists(path("latest/manifest")));
  view->remove_all(path("latest"));
  EXPECT_TRUE(view->exists(path("ep2")));
}

// As the real disk's do (io/replaced_file).
TEST_F(SimDiskTest, LinksAndFoldersAreNotReplacedByFiles) {
  write("victim", "kept", true);
  view->symlink("victim", path("link"));
  view->make_folders(path("a.new/inner"));
  for (const char* name : {"link", "a"})
    EXPECT_THROW(replace_file(*view, path(name), "new"), OperatingError) << name;
  EXPECT_EQ(text(view->read(path("victim"))), "kept");
  EXPECT_TRUE(view->is_link(path("link")));
  EXPECT_TRUE(view->exists(path("a.new/inner"))) << "a folder of somebody else's";
  view->symlink("victim", path("b.new"));
  EXPECT_THROW(replace_file(*view, path("b"), "new"), OperatingError);
  EXPECT_TRUE(view->is_link(path("b.new")));
  replace_file(*view, path("victim"), "new");
  EXPECT_EQ(text(view->read(path("victim"))), "new");
}

// The real disk has folders of these names.
TEST_F(SimDiskTest, WhetherAFileCanBeReplacedIsAskedOfTheSimulatedDisk) {
  Scratch real;
  std::filesystem::create_directories(real.path("run/a"));
  std::filesystem::create_directories(real.path("run/b.new"));
  disk.mirror(real.path("run"));
  view->remove_all(real.path("run/a"));
  view->remove_all(real.path("run/b.new"));
  for (const char* name : {"run/a", "run/b"}) {
    replace_file(*view, real.path(name), "new");
    EXPECT_EQ(text(view->read(real.path(name))), "new");
  }
}

TEST_F(SimDiskTest, AFolderMovesWithItsFiles) {
  view->make_folders(path("old/below"));
  write("old/below/a", "1", false);
  view->rename(path("old"), path("new"));
  EXPECT_EQ(text(view->read(path("new/below/a"))), "1");
  EXPECT_FALSE(view->exists(path("old")));
  EXPECT_THROW(view->rename(path("nothing"), path("b")), OperatingError);
  view->make_folders(path("other"));
  EXPECT_THROW(view->rename(path("other"), path("new")), OperatingError) << "it is not empty";
}

TEST_F(SimDiskTest, SyncedFilesSurviveAPowerLoss) {
  write("a", "content", true);
  view->sync_folder(kFolder);
  EXPECT_THAT(survivors("a"), ElementsAre("content"));
}

TEST_F(SimDiskTest, BytesThatAreNotSyncedAreKeptTornOrLost) {
  write("a", "", true);
  view->sync_folder(kFolder);
  view->open(path("a"), false)->append(bytes("ab"));
  EXPECT_THAT(survivors("a"), ElementsAre("", "a", "ab"));
}

TEST_F(SimDiskTest, ANameThatIsNotSyncedMayBeLost) {
  write("a", "content", true);
  EXPECT_THAT(survivors("a"), ElementsAre("-", "content"));
}

TEST_F(SimDiskTest, ARenameHappensAsAWholeOrNotAtAll) {
  write("a", "old", true);
  write("a.new", "new", true);
  view->sync_folder(kFolder);
  view->rename(path("a.new"), path("a"));
  EXPECT_THAT(survivors("a"), ElementsAre("new", "old"));
  view->sync_folder(kFolder);
  EXPECT_THAT(survivors("a"), ElementsAre("new"));
  EXPECT_THAT(survivors("a.new"), ElementsAre("-"));
}

TEST_F(SimDiskTest, AfterAPowerLossNothingMoreIsLost) {
  write("a", "content", false);
  disk.lose_power(RandomKey(1, "power"));
  EXPECT_EQ(survivors("a").size(), 1u);
}

TEST_F(SimDiskTest, LocksEndWithTheirHolder) {
  const auto other = disk.view(1);
  auto held = view->lock(path(".lock"), "me");
  ASSERT_TRUE(held);
  EXPECT_FALSE(other->lock(path(".lock"), "other"));
  EXPECT_FALSE(view->lock(path(".lock"), "me again"));
  disk.release_locks(0);
  const auto theirs = other->lock(path(".lock"), "other");
  EXPECT_TRUE(theirs);
  held.reset();
  EXPECT_FALSE(view->lock(path(".lock"), "me")) << "letting go of a lost lock freed the other's";
  EXPECT_EQ(text(view->read(path(".lock"))), "other");
}

TEST_F(SimDiskTest, WritesFailLandInPartOrNotAtAllAsAsked) {
  SimDisk::WriteOutcome outcome = SimDisk::WriteOutcome::kDone;
  const auto bad = disk.view(
      1, [&](const SimDisk::Call& call) { return call.bytes ? outcome : SimDisk::WriteOutcome::kDone; });
  const auto file = bad->open(path("a"), true);
  const auto append = [&](SimDisk::WriteOutcome what) {
    outcome = what;
    file->append(bytes("ab"));
  };
  EXPECT_THAT(message_of<OperatingError>([&] { append(SimDisk::WriteOutcome::kFull); }),
              HasSubstr("No space left"));
  EXPECT_THAT(message_of<OperatingError>([&] { append(SimDisk::WriteOutcome::kFails); }),
              HasSubstr("Input/output error"));
  append(SimDisk::WriteOutcome::kDone);
  EXPECT_FALSE(disk.damaged(kFolder));
  append(SimDisk::WriteOutcome::kTorn);
  append(SimDisk::WriteOutcome::kLost);
  EXPECT_EQ(text(bad->read(path("a"))), std::string("aba\0\0\0", 6));
  EXPECT_TRUE(disk.damaged(kFolder));
}

TEST_F(SimDiskTest, AWriteOfZerosThatIsLostIsMissedByNobody) {
  SimDisk::WriteOutcome outcome = SimDisk::WriteOutcome::kDone;
  const auto bad = disk.view(1, [&](const SimDisk::Call&) { return outcome; });
  const auto file = bad->open(path("a"), true);
  const std::string half("ab\0\0", 4), nothing(4, '\0');
  const auto append = [&](SimDisk::WriteOutcome what, const std::string& content) {
    outcome = what;
    file->append(bytes(content));
  };
  append(SimDisk::WriteOutcome::kLost, nothing);
  append(SimDisk::WriteOutcome::kTorn, half);
  append(SimDisk::WriteOutcome::kLost, "");
  EXPECT_FALSE(disk.damaged(kFolder));
  EXPECT_EQ(text(bad->read(path("a"))), nothing + half);
  append(SimDisk::WriteOutcome::kLost, half);
  EXPECT_TRUE(disk.damaged(kFolder));
  EXPECT_FALSE(SimDisk::changes_write(SimDisk::WriteOutcome::kTorn, bytes(half)));
  EXPECT_TRUE(SimDisk::changes_write(SimDisk::WriteOutcome::kLost, bytes(half)));
  EXPECT_TRUE(SimDisk::changes_write(SimDisk::WriteOutcome::kFull, bytes(nothing)))
      << "a full disk is an error";
}

TEST_F(SimDiskTest, AProcessMayEndBetweenTheRemovalOfTwoNames) {
  view->make_folders(path("ep1"));
  write("ep1/a", "1", true);
  write("ep1/b", "2", true);
  int left = 1;
  const auto dying = disk.view(1, [&](const SimDisk::Call&) -> SimDisk::WriteOutcome {
    if (left-- == 0) throw std::runtime_error("killed");
    return SimDisk::WriteOutcome::kDone;
  });
  EXPECT_THROW(dying->remove_all(path("ep1")), std::runtime_error);
  EXPECT_THAT(view->list(path("ep1")), ElementsAre("b"));
}

TEST_F(SimDiskTest, APublishedCheckpointSurvivesAnyPowerLoss) {
  const std::string checkpoints = path("checkpoints");
  view->make_folders(checkpoints);
  write_checkpoint(*view, checkpoints + "/ep0-ba1", sample_tensors(), 2);
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto after = disk.after_power_loss(RandomKey(seed, "power"));
    EXPECT_NO_THROW(read_checkpoint(*after->view(0), checkpoints + "/ep0-ba1"));
  }
}

}  // namespace
}  // namespace tutti
