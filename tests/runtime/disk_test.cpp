#include "runtime/disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "runtime/error.h"
#include "runtime/regular_file.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text(const std::vector<std::byte>& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

template <class Call>
std::string operating_error(Call call) {
  try {
    call();
  } catch (const OperatingError& error) {
    return error.what();
  }
  return "";
}

class DiskTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) {
    auto file = disk.open(folder.path(name), true);
    file->append(bytes(content));
    file->close();
  }
  Scratch folder;
  PosixDisk disk;
};

TEST_F(DiskTest, ReadsWhatWasAppended) {
  auto file = disk.open(folder.path("a"), true);
  file->append(bytes("one "));
  file->append(bytes("two"));
  file->sync();
  file->close();
  EXPECT_EQ(text(disk.read(folder.path("a"))), "one two");
  EXPECT_EQ(disk.size(folder.path("a")), 7u);
}

TEST_F(DiskTest, AppendsAfterWhatWasWrittenElsewhere) {
  auto file = disk.open(folder.path("a"), true);
  file->write_at(4, bytes("tail"));
  file->write_at(0, bytes("head"));
  file->append(bytes("!"));
  EXPECT_EQ(text(disk.read(folder.path("a"))), "headtail!");
}

// Whole pages bypass the cache where the file system can, and what lies between them does not.
TEST_F(DiskTest, LargeWritesOfPagesAndSmallOnesMakeOneFile) {
  constexpr size_t kChunk = size_t{1} << 20;
  std::unique_ptr<std::byte, void (*)(std::byte*)> pages(
      static_cast<std::byte*>(std::aligned_alloc(4096, 2 * kChunk)),
      [](std::byte* memory) { std::free(memory); });
  for (size_t i = 0; i < 2 * kChunk; ++i) pages.get()[i] = static_cast<std::byte>(i * 7 >> 3);
  const std::span<const std::byte> all(pages.get(), 2 * kChunk);
  Scratch on_disk(std::filesystem::temp_directory_path());
  for (Scratch* where : {&folder, &on_disk}) {
    auto file = disk.open(where->path("file"), true);
    file->write_at(0, all.first(kChunk));
    file->append(bytes("between"));
    file->write_at(2 * kChunk, all);
    file->write_at(kChunk + 7, all.subspan(7, kChunk - 7));
    file->append(bytes("end"));
    file->sync();
    file->close();
    const auto found = disk.read(where->path("file"));
    ASSERT_EQ(found.size(), 4 * kChunk + 3);
    const auto part = [&](size_t from, size_t count) { return std::span(found).subspan(from, count); };
    EXPECT_TRUE(std::ranges::equal(part(0, kChunk), all.first(kChunk)));
    EXPECT_TRUE(std::ranges::equal(part(kChunk, 7), bytes("between")));
    EXPECT_TRUE(std::ranges::equal(part(kChunk + 7, kChunk - 7), all.subspan(7, kChunk - 7)));
    EXPECT_TRUE(std::ranges::equal(part(2 * kChunk, 2 * kChunk), all));
    EXPECT_TRUE(std::ranges::equal(part(4 * kChunk, 3), bytes("end")));
  }
}

TEST_F(DiskTest, OpeningWithoutTruncatingKeepsTheContent) {
  write("a", "12345");
  auto file = disk.open(folder.path("a"), false);
  file->write_at(1, bytes("xx"));
  file->append(bytes("6"));
  EXPECT_EQ(text(disk.read(folder.path("a"))), "1xx456");
  disk.open(folder.path("a"), true);
  EXPECT_EQ(disk.size(folder.path("a")), 0u);
}

TEST_F(DiskTest, ReadsARange) {
  write("a", "0123456789");
  EXPECT_EQ(text(disk.read_range(folder.path("a"), 3, 4)), "3456");
  EXPECT_EQ(text(disk.read_range(folder.path("a"), 10, 0)), "");
}

TEST_F(DiskTest, ReadingPastTheEndNamesWhatIsThere) {
  write("a", "0123456789");
  EXPECT_THAT(operating_error([&] { disk.read_range(folder.path("a"), 8, 3); }),
              HasSubstr("a: cannot read 3 bytes at 8: the file has 10"));
  EXPECT_NE(operating_error([&] { disk.read_range(folder.path("a"), 1, UINT64_MAX); }), "");
}

TEST_F(DiskTest, ErrorsNamePathAndReason) {
  EXPECT_EQ(operating_error([&] { disk.read(folder.path("none")); }),
            folder.path("none") + ": cannot stat: No such file or directory");
  EXPECT_THAT(operating_error([&] { disk.open(folder.path("none"), false); }), HasSubstr("No such file"));
  EXPECT_THAT(operating_error([&] { disk.open(folder.path("no/where"), true); }), HasSubstr("cannot create"));
  EXPECT_THAT(operating_error([&] { disk.rename(folder.path("a"), folder.path("b")); }),
              HasSubstr("cannot rename to"));
  EXPECT_THAT(operating_error([&] { disk.sync_folder(folder.path("none")); }), HasSubstr("No such file"));
  auto file = disk.open(folder.path("a"), true);
  file->close();
  EXPECT_THAT(operating_error([&] { file->append(bytes("late")); }), HasSubstr("a: cannot write: Bad file"));
}

TEST_F(DiskTest, ListsNamesInOrder) {
  write("b", "");
  write("a", "");
  disk.make_folders(folder.path("c/d"));
  EXPECT_THAT(disk.list(folder.path()), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(disk.list(folder.path("none")).empty());
  EXPECT_TRUE(disk.exists(folder.path("c/d")));
  EXPECT_FALSE(disk.exists(folder.path("none")));
}

TEST_F(DiskTest, RenameReplaces) {
  write("a", "new");
  write("b", "old");
  disk.rename(folder.path("a"), folder.path("b"));
  disk.sync_folder(folder.path());
  EXPECT_EQ(text(disk.read(folder.path("b"))), "new");
  EXPECT_FALSE(disk.exists(folder.path("a")));
}

TEST_F(DiskTest, LinksAreNotWrittenThrough) {
  write("victim", "untouched");
  disk.symlink("victim", folder.path("link"));
  const std::string why = folder.path("link") + ": is a link, and nothing is written through links";
  EXPECT_EQ(operating_error([&] { disk.open(folder.path("link"), true); }), why);
  EXPECT_EQ(operating_error([&] { disk.open(folder.path("link"), false); }), why);
  EXPECT_EQ(operating_error([&] { disk.lock(folder.path("link"), "me"); }), why);
  EXPECT_THAT(operating_error([&] { disk.lock_state(folder.path("link")); }), HasSubstr("is a link"));
  EXPECT_EQ(text(disk.read(folder.path("link"))), "untouched");
}

// Opening a pipe for reading waits for a writer.
TEST_F(DiskTest, APipeOrADeviceIsNoFile) {
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  const std::string why = folder.path("pipe") + ": cannot open: is a pipe, and no file";
  std::byte byte{};
  EXPECT_EQ(operating_error([&] { disk.read(folder.path("pipe")); }), why);
  EXPECT_EQ(operating_error([&] { disk.read_into(folder.path("pipe"), 0, {&byte, 1}); }), why);
  EXPECT_EQ(operating_error([&] { disk.lock_state(folder.path("pipe")); }), why);
  EXPECT_THAT(operating_error([&] { disk.open(folder.path("pipe"), true); }), HasSubstr("is a pipe"));
  EXPECT_THAT(operating_error([&] { disk.read("/dev/zero"); }), HasSubstr("is a device, and no file"));
  EXPECT_THAT(operating_error([&] { text_of_file(folder.path()); }), HasSubstr("is a folder, and no file"));
  disk.open("/dev/null", true)->append(bytes("gone"));
}

TEST_F(DiskTest, LookingAtALockNeitherTakesNorWritesIt) {
  EXPECT_EQ(disk.lock_state(folder.path("lock")), LockState::kFree);
  EXPECT_FALSE(disk.exists(folder.path("lock")));
  const auto held = disk.lock(folder.path("lock"), "me");
  EXPECT_EQ(disk.lock_state(folder.path("lock")), LockState::kHeld);
  EXPECT_EQ(text_of_file(folder.path("lock")), "me");
}

TEST_F(DiskTest, AFolderIsDistinguishedFromAnotherOfItsName) {
  EXPECT_EQ(disk.identity(folder.path("a")), 0u);
  disk.make_folders(folder.path("a"));
  const uint64_t before = disk.identity(folder.path("a"));
  disk.rename(folder.path("a"), folder.path("b"));
  disk.make_folders(folder.path("a"));
  EXPECT_EQ(disk.identity(folder.path("b")), before);
  EXPECT_NE(disk.identity(folder.path("a")), before);
}

TEST_F(DiskTest, SymlinkReplaces) {
  write("first", "1");
  write("second", "2");
  disk.symlink("first", folder.path("latest"));
  disk.symlink("second", folder.path("latest"));
  EXPECT_EQ(text(disk.read(folder.path("latest"))), "2");
  EXPECT_THAT(disk.list(folder.path()), ElementsAre("first", "latest", "second"));
}

TEST_F(DiskTest, SymlinkPutsAFolderInItsPlaceAside) {
  write("first", "1");
  disk.make_folders(folder.path("latest"));
  write("latest/copy", "x");
  disk.symlink("first", folder.path("latest"));
  EXPECT_EQ(text(disk.read(folder.path("latest"))), "1");
  EXPECT_EQ(text(disk.read(folder.path("latest-aside/copy"))), "x");
}

TEST_F(DiskTest, RemovesFoldersWhole) {
  disk.make_folders(folder.path("a/b"));
  write("a/b/c", "x");
  disk.remove_all(folder.path("a"));
  EXPECT_FALSE(disk.exists(folder.path("a")));
  disk.remove_all(folder.path("a"));
}

TEST_F(DiskTest, AFullDiskIsAnOperatingError) {
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "may not mount a tmpfs";
  {
    auto file = disk.open(folder.path("a"), true);
    file->append(bytes(std::string(1000, 'x')));
    EXPECT_THAT(operating_error([&] { file->append(bytes(std::string(1 << 20, 'x'))); }),
                HasSubstr("a: cannot write: No space left on device"));
    EXPECT_EQ(text(disk.read_range(folder.path("a"), 0, 1000)), std::string(1000, 'x'));
  }
  EXPECT_EQ(::umount(folder.path().c_str()), 0);
}

}  // namespace
}  // namespace tutti
