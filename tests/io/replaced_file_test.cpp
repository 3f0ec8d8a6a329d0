#include "io/replaced_file.h"

#include <gtest/gtest.h>

#include <span>

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

TEST(FreshFileTest, ADeviceIsWrittenInPlace) {
  PosixDisk disk;
  FreshFile fresh(disk, "/dev/null");
  EXPECT_EQ(fresh.name(), "/dev/null");
  EXPECT_NO_THROW(fresh.commit());
}

}  // namespace
}  // namespace tutti
