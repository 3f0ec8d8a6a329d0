#include "runtime/process/memory_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>

#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

constexpr auto kMapped = MemoryLimits::Place::kMapped;

// A process in the group /jobs/17, and the groups' files, which a test writes.
class GroupsTest : public testing::Test {
 protected:
  void mount(const std::string& line, const std::string& groups) {
    write_text(process_ + "mountinfo", "22 1 0:20 / / rw - ext4 /dev/sda rw\n" + line + "\n");
    write_text(process_ + "cgroup", groups);
  }
  void mount_second(const std::string& root = "/") {
    mount("41 31 0:38 " + root + " " + tree_ + " rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate",
          "4:memory:/other\n0::/jobs/17\n");
  }
  void mount_first() {
    mount("35 31 0:32 / " + tree_ + " rw,relatime - cgroup cgroup rw,memory",
          "5:cpu,cpuacct:/x\n4:memory:/jobs/17\n0::/\n");
  }
  void write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = tree_ + file;
    std::filesystem::create_directories(path.parent_path());
    write_text(path, text + "\n");
  }
  std::string process() const { return process_.substr(0, process_.size() - 1); }

  Scratch folder_;
  std::string process_ = folder_.path(""), tree_ = folder_.path("tree");
};

TEST_F(GroupsTest, OfNoLimitNothingIsSaid) {
  mount_second();
  write("/jobs/17/memory.max", "max");
  write("/jobs/17/memory.current", "1000");
  const MemoryLimits limits(process());
  EXPECT_FALSE(limits.any());
  EXPECT_TRUE(limits.fit(int64_t{1} << 50, 0, kMapped));
  EXPECT_EQ(limits.text(), "");
}

TEST_F(GroupsTest, FilesThatWereReadAreNotUsed) {
  mount_second();
  write("/jobs/17/memory.max", "1000000");
  write("/jobs/17/memory.current", "900000");
  write("/jobs/17/memory.stat",
        "anon 1\nfile 800000\nworkingset_inactive_file 7\ninactive_file 300000\nactive_file 50000");
  const MemoryLimits limits(process());
  EXPECT_TRUE(limits.kills());
  EXPECT_FALSE(limits.limit_addresses());
  EXPECT_TRUE(limits.fit(450000, 0, kMapped));
  EXPECT_FALSE(limits.fit(450001, 0, kMapped));
  EXPECT_EQ(limits.text(), "memory limit of the control group of 1.0 MB, of which 0.5 MB are left");
  write("/jobs/17/memory.current", "950000");
  EXPECT_FALSE(limits.fit(450000, 0, kMapped)) << "what is used is read anew";
}

TEST_F(GroupsTest, LimitOfAGroupAboveCounts) {
  mount_second();
  write("/jobs/17/memory.max", "max");
  write("/jobs/memory.max", "1000000");
  write("/jobs/memory.current", "400000");
  const MemoryLimits limits(process());
  EXPECT_TRUE(limits.fit(600000, 0, kMapped));
  EXPECT_FALSE(limits.fit(600001, 0, kMapped));
}

// As a container sees its own group.
TEST_F(GroupsTest, TreeMayBeMountedFromAGroupOn) {
  mount_second("/jobs");
  write("/17/memory.max", "1000000");
  write("/17/memory.current", "0");
  EXPECT_FALSE(MemoryLimits(process()).fit(1000001, 0, kMapped));
}

TEST_F(GroupsTest, RanksOfAGroupHaveItTogether) {
  mount_first();
  write("/jobs/17/memory.limit_in_bytes", "1000000");
  write("/jobs/17/memory.usage_in_bytes", "400000");
  write("/jobs/17/memory.stat", "inactive_file 9\ntotal_inactive_file 100000\ntotal_active_file 0");
  write("/memory.limit_in_bytes", "9223372036854771712");
  const MemoryLimits limits(process(), /*sharers=*/2);
  EXPECT_TRUE(limits.fit(350000, 0, kMapped));
  EXPECT_FALSE(limits.fit(350001, 0, kMapped));
}

TEST_F(GroupsTest, RanksLeaveOneReserveTogether) {
  mount_second();
  write("/jobs/17/memory.max", "1000000");
  write("/jobs/17/memory.current", "0");
  const MemoryLimits limits(process(), /*sharers=*/8);
  EXPECT_TRUE(limits.fit(100000, 200000, kMapped));
  EXPECT_FALSE(limits.fit(100000, 200001, kMapped));
}

TEST_F(GroupsTest, RankThatCannotStartIsRefused) {
  mount_second();
  write("/jobs/17/memory.max", "100000000");
  write("/jobs/17/memory.current", "30000000");
  const MemoryLimits limits(process(), /*sharers=*/8);
  limits.require_start(4);
  write("/jobs/17/memory.current", "40000000");
  EXPECT_EQ(
      message_of<OperatingError>([&] { limits.require_start(4); }),
      "too little memory to start a rank, which takes 67 MB: the system has a memory limit of the control "
      "group of 100.0 MB, of which 60.0 MB are left");
}

TEST_F(GroupsTest, AddressesAreThoseOfTheProcess) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit lower{std::min<rlim_t>(before.rlim_max, rlim_t{1} << 50), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &lower), 0);
  write_text(process_ + "statm", "1000 200 100 50 0 300 0\n");
  const MemoryLimits limits(process());
  setrlimit(RLIMIT_AS, &before);
  EXPECT_TRUE(limits.limit_addresses());
  EXPECT_FALSE(limits.kills());
  const int64_t left = (int64_t{1} << 50) - 1000 * sysconf(_SC_PAGESIZE);
  EXPECT_TRUE(limits.fit(left, 0, kMapped));
  EXPECT_FALSE(limits.fit(left + 1, 0, kMapped));
}

}  // namespace
}  // namespace tutti
