#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>

#include "io/checkpoint/checkpoint.h"
#include "runtime/error.h"
#include "tests/io/checkpoint/sample_checkpoint.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

// A file system of 1 MB.
class DiskFullTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(mount_);
    if (::mount("tmpfs", mount_.c_str(), "tmpfs", 0, "size=1m") != 0) {
      GTEST_SKIP() << "needs the right to mount a tmpfs: " << std::strerror(errno);
    }
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) ::umount(mount_.c_str());
  }

  std::string folder(const std::string& name) const { return mount_ + "/checkpoints/" + name; }

  Scratch scratch_;
  std::string mount_ = scratch_.path("small");
  bool mounted_ = false;
  PosixDisk disk_;
};

TEST_F(DiskFullTest, IsAnOperatingErrorAndTheEarlierCheckpointStays) {
  write_checkpoint(disk_, folder("ep1-ba10"), sample_tensors(), 2);
  const std::map<std::string, at::Tensor> large = {{"model/w", at::zeros({1 << 20}, at::kFloat)}};
  const auto why = message_of<OperatingError>([&] { write_checkpoint(disk_, folder("ep2-ba20"), large, 1); });
  EXPECT_THAT(why,
              testing::AllOf(testing::HasSubstr("rank-0.h5"), testing::HasSubstr(std::strerror(ENOSPC))));
  const auto none_bad = [](const std::string& bad) { FAIL() << bad; };
  EXPECT_EQ(newest_good_checkpoint(disk_, mount_ + "/checkpoints", {none_bad}).folder, folder("ep1-ba10"));
}

TEST_F(DiskFullTest, RemovingTheLeftoversMakesRoom) {
  const std::map<std::string, at::Tensor> large = {{"model/w", at::zeros({1 << 20}, at::kFloat)}};
  EXPECT_THROW(write_checkpoint(disk_, folder("ep2-ba20"), large, 1), OperatingError);
  EXPECT_THROW(write_checkpoint(disk_, folder("ep3-ba30"), sample_tensors(), 2), OperatingError);
  for (const char* name : {"ep2-ba20.unfinished", "ep3-ba30.unfinished"})
    remove_checkpoint(disk_, folder(name));
  write_checkpoint(disk_, folder("ep3-ba30"), sample_tensors(), 2);
  EXPECT_EQ(read_checkpoint(disk_, folder("ep3-ba30")).tensors.size(), sample_tensors().size());
}

}  // namespace
}  // namespace tutti
