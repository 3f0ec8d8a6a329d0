// The ranks' agreement on the checkpoint that they start from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "sim/simulate/simulation.h"
#include "tests/sim/environment/disk_below.h"
#include "tests/sim/small_job.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr int kRanks = 3;
constexpr int64_t kLast = 15, kBeforeLast = 12;  // steps after which there is a checkpoint

// The ranks that read the beginning of a file: only a hash needs it.
using Readers = std::map<std::string, std::set<int>>;

class NotingDisk final : public DiskBelow {
 public:
  NotingDisk(std::unique_ptr<Disk> below, int rank, Readers& readers)
      : DiskBelow(std::move(below)), rank_(rank), readers_(readers) {}
  void read_into(const std::string& path, uint64_t offset, std::span<std::byte> to) const override {
    if (offset == 0 && path.ends_with(".h5")) readers_[path.substr(path.rfind('/') + 1)].insert(rank_);
    DiskBelow::read_into(path, offset, to);
  }

 private:
  int rank_;
  Readers& readers_;
};

class BlindDisk final : public DiskBelow {
 public:
  using DiskBelow::DiskBelow;
  bool exists(const std::string& path) const override {
    return path.find("/checkpoints/ep") == std::string::npos && below_->exists(path);
  }
};

class ResumedStart : public testing::Test {
 protected:
  ResumedStart() { attempt(); }

  SimAttempt attempt(const SimSeams& seams = {}) {
    Job job = simulated_job(small_job(), kRanks);
    job.nonce = "n" + std::to_string(attempts_);
    SimWorld::Options options;
    options.attempt = attempts_++;
    options.on_published = [](const SimDisk&) { return KnownCheckpoint(); };
    return SimWorld(job, disk_, nullptr, seams, options).run();
  }

  void flip_a_bit(const std::string& file) {
    const std::string path = "/simulated/run/checkpoints/latest/" + file;
    const auto disk = disk_.view(0);
    auto bytes = disk->read_range(path, disk->size(path) / 2, 1);
    bytes[0] ^= std::byte{1};
    disk->open(path, /*truncate=*/false)->write_at(disk->size(path) / 2, bytes);
  }

  SimDisk disk_;
  int attempts_ = 0;
};

TEST_F(ResumedStart, EachFileIsVerifiedByOneRank) {
  Readers readers;
  SimSeams seams;
  seams.disk = [&](std::unique_ptr<Disk> disk, int rank) {
    return std::make_unique<NotingDisk>(std::move(disk), rank, readers);
  };
  EXPECT_EQ(attempt(seams).resumed_at, kLast);
  EXPECT_THAT(readers, SizeIs(kRanks + 1));
  for (const auto& [file, ranks] : readers) EXPECT_THAT(ranks, SizeIs(1)) << file;
  EXPECT_EQ(readers["rank-2.h5"], std::set<int>{2});
}

TEST_F(ResumedStart, ADamagedFileOfAnyRankSendsAllToTheOneBefore) {
  for (const char* file : {"rank-0.h5", "rank-1.h5", "rank-2.h5", "checkpoint.h5"}) {
    flip_a_bit(file);
    const SimAttempt resumed = attempt();
    EXPECT_EQ(resumed.resumed_at, kBeforeLast) << file;
    EXPECT_TRUE(resumed.well()) << file;  // and publishes the last one again
  }
}

TEST_F(ResumedStart, ARankThatDoesNotSeeTheCheckpointIsNoReasonToTakeAnother) {
  SimSeams seams;
  seams.disk = [&](std::unique_ptr<Disk> disk, int rank) {
    return rank == 1 ? std::make_unique<BlindDisk>(std::move(disk)) : std::move(disk);
  };
  const SimAttempt refused = attempt(seams);
  EXPECT_EQ(refused.resumed_at, -1);
  ASSERT_THAT(refused.ends, SizeIs(kRanks));
  for (const RankEnd& end : refused.ends) {
    EXPECT_EQ(end.kind, EndKind::kRefused);
    EXPECT_THAT(end.reason, HasSubstr("rank 1: host simulated does not see the checkpoint that rank 0"));
  }
  EXPECT_FALSE(disk_.view(0)->exists("/simulated/run/.nonce"));
  EXPECT_EQ(attempt().resumed_at, kLast) << "nothing was put aside";
}

}  // namespace
}  // namespace tutti
