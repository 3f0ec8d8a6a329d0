#include "io/replaced_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <span>

#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

void append_text(Disk& disk, const std::string& path, std::string_view text) {
  const auto file = disk.open(path, true);
  file->append(std::as_bytes(std::span(text)));
  file->close();
}

TEST(FreshFileTest, AnUnfinishedFileNeverHasThePath) {
  Scratch scratch;
  PosixDisk disk;
  append_text(disk, scratch.path("a"), "old");
  {
    FreshFile fresh(disk, scratch.path("a"));
    append_text(disk, fresh.name(), "ne");
    EXPECT_EQ(disk.read_text(scratch.path("a"), 9), "old");
  }
  EXPECT_EQ(disk.list(scratch.path()), std::vector<std::string>{"a"}) << "nothing is left of it";
  {
    FreshFile fresh(disk, scratch.path("a"));
    append_text(disk, fresh.name(), "new");
    fresh.commit();
  }
  EXPECT_EQ(disk.read_text(scratch.path("a"), 9), "new");
  EXPECT_EQ(disk.list(scratch.path()), std::vector<std::string>{"a"});
}

TEST(ReplaceFile, WritesAFileWholeOrNotAtAll) {
  Scratch scratch;
  PosixDisk disk;
  replace_file(disk, scratch.path("a"), "old");
  replace_file(disk, scratch.path("a"), "new");
  EXPECT_EQ(disk.read_text(scratch.path("a"), 9), "new");
  append_text(disk, scratch.path("other"), "kept");
  std::filesystem::create_symlink(scratch.path("other"), scratch.path("link"));
  EXPECT_THROW(replace_file(disk, scratch.path("link"), "new"), OperatingError);
  EXPECT_EQ(disk.read_text(scratch.path("other"), 9), "kept");
  std::filesystem::create_directory(scratch.path("folder"));
  EXPECT_THROW(replace_file(disk, scratch.path("folder"), "new"), OperatingError);
  EXPECT_THAT(disk.list(scratch.path()), testing::UnorderedElementsAre("a", "folder", "link", "other"));
  EXPECT_NO_THROW(replace_file(disk, "/dev/null", "new"));
}

TEST(ReplaceFile, LeavesAFolderOfTheNewNameAndTheFilesMode) {
  Scratch scratch;
  PosixDisk disk;
  std::filesystem::create_directories(scratch.path("a.new/inner"));
  EXPECT_THROW(replace_file(disk, scratch.path("a"), "new"), OperatingError);
  EXPECT_TRUE(std::filesystem::exists(scratch.path("a.new/inner")));
  append_text(disk, scratch.path("secret"), "old");
  const auto mode = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  std::filesystem::permissions(scratch.path("secret"), mode);
  replace_file(disk, scratch.path("secret"), "new");
  EXPECT_EQ(std::filesystem::status(scratch.path("secret")).permissions(), mode);
  EXPECT_THROW(replace_file(disk, scratch.path(std::string(300, 'x')), "new"), OperatingError);
}

TEST(FreshFileTest, ADeviceIsWrittenInPlace) {
  PosixDisk disk;
  FreshFile fresh(disk, "/dev/null");
  EXPECT_EQ(fresh.name(), "/dev/null");
  EXPECT_NO_THROW(fresh.commit());
}

}  // namespace
}  // namespace tutti
