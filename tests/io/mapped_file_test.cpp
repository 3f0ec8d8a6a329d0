#include "io/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

std::string write_file(const Scratch& folder, size_t bytes) {
  const std::string path = folder.path("data.bin");
  std::ofstream(path) << std::string(bytes, 'x');
  return path;
}

TEST(MappedFileTest, HoldsTheBytes) {
  const Scratch folder;
  const MappedFile file(write_file(folder, 5000));
  ASSERT_EQ(file.bytes().size(), 5000u);
  EXPECT_EQ(file.bytes()[4999], std::byte{'x'});
}

TEST(MappedFileTest, MissingFileIsNamed) {
  EXPECT_THAT([] { MappedFile("/no/such/file"); },
              testing::ThrowsMessage<UserError>(testing::HasSubstr("/no/such/file: cannot be read")));
}

// /proc/kmsg, of which the kernel says that it is a regular file too, waits for the kernel to speak.
TEST(MappedFileTest, FilesOfTheKernelAreRefused) {
  for (const char* path : {"/proc/self/status", "/sys/kernel/mm/transparent_hugepage/enabled"})
    if (std::filesystem::exists(path))
      EXPECT_THAT([&] { MappedFile{path}; }, testing::ThrowsMessage<UserError>(
                                                 testing::HasSubstr("is a file of the kernel, and no file")));
}

TEST(MappedFileDeathTest, AFileTruncatedWhileReadIsNamed) {
  const Scratch folder;
  const std::string path = write_file(folder, 1 << 20);
  const auto read_on = [&path] {
    const MappedFile other(path), file(path);
    std::filesystem::resize_file(path, 100);
    volatile auto last = file.bytes().back();
    static_cast<void>(last);
  };
  EXPECT_EXIT(read_on(), testing::ExitedWithCode(1), "error: .*data.bin: it was cut short while it was read");
}

#ifdef __SANITIZE_ADDRESS__
TEST(MappedFileDeathTest, AddressSanitizerSeesAReadBehindTheEnd) {
  const Scratch folder;
  const auto read_on = [&folder] {
    const MappedFile file(write_file(folder, 5000));
    volatile auto next = *(file.bytes().data() + 5000);
    static_cast<void>(next);
  };
  EXPECT_DEATH(read_on(), "use-after-poison");
}
#endif

TEST(MappedFileTest, PointersOfGitLfsAreNoFiles) {
  const Scratch folder;
  const std::string path = folder.path("weights.safetensors");
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123456\n";
  write_text(path, pointer);
  EXPECT_THAT(message_of<UserError>([&] { MappedFile file(path); }),
              testing::HasSubstr("is a pointer of Git LFS, and not the file: git lfs pull brings it"));
  write_text(path, pointer + std::string(1024, '.'));  // pointers are shorter
  EXPECT_NO_THROW(MappedFile file(path));
}

// In a process of its own, which has mapped nothing before.
TEST(MappedFileDeathTest, AForeignBusErrorGoesToThePreviousHandler) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fail_elsewhere = [] {
    std::signal(SIGBUS, [](int) { std::_Exit(42); });
    const Scratch folder;
    const MappedFile file(write_file(folder, 5000));
    std::raise(SIGBUS);
  };
  EXPECT_EXIT(fail_elsewhere(), testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace tutti
