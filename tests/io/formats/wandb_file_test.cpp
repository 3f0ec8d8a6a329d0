#include "io/formats/wandb_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/io/formats/wandb_rows.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::IsSupersetOf;
using testing::Pair;
using testing::SizeIs;

std::string cut_of(const std::string& path, int64_t step) {
  PosixDisk disk;
  const std::string copy = path + ".copy";
  write_text(copy, read_text(path));
  WandbFile(disk, copy).resume(step);
  return read_text(copy);
}

const std::string kGolden = TUTTI_SOURCE_DIR "/tests/golden/trackers/run-golden01.wandb";

TEST(WandbFileTest, AFileOfThePackageIsReadAcrossItsBlocks) {
  const Scratch scratch;
  const std::string path = scratch.path("run.wandb");
  write_text(path, read_text(kGolden));
  const auto rows = rows_of_file(path, 40);
  ASSERT_THAT(rows, SizeIs(30));
  EXPECT_THAT(rows[1].values, IsSupersetOf({Pair("loss/train/total", "0.5"), Pair("_step", "1")}));
  EXPECT_EQ(rows[29].values.at("text"), "\"" + std::string(29 * 40, 'x') + "\"");
}

TEST(WandbFileTest, AResumedFileOfThePackageIsItsBeginning) {
  const Scratch scratch;
  const std::string path = scratch.path("run.wandb"), whole = read_text(kGolden);
  write_text(path, whole);
  std::size_t before = 0;
  for (const int64_t step : {0, 10, 29, 30}) {
    const std::string cut = cut_of(path, step);
    EXPECT_TRUE(whole.starts_with(cut)) << step;
    EXPECT_GT(cut.size(), before);
    before = cut.size();
  }
  EXPECT_LT(before, whole.size());  // the record of the run's end
}

// The layout is fixed by the reader, which reads the package's file.
TEST(WandbFileTest, RecordsOfAnyLengthComeBack) {
  const Scratch scratch;
  PosixDisk disk;
  const std::string path = scratch.path("run.wandb");
  WandbFile file(disk, path);
  file.begin({.id = "abc"});
  for (int64_t step = 0; step < 60; ++step) {
    file.row({{"text", std::string(static_cast<std::size_t>(step * 997 % 4000), 'x')}}, step);
    file.flush(false);
  }
  file.row({{"text", std::string(100'000, 'y')}}, 60);
  file.flush(true);
  const auto rows = rows_of_file(path, 60);
  ASSERT_THAT(rows, SizeIs(61));
  for (int64_t step = 0; step < 60; ++step)
    EXPECT_EQ(rows[step].values.at("text").size(), static_cast<std::size_t>(step * 997 % 4000));
  EXPECT_EQ(rows[60].values.at("text"), std::string(100'000, 'y'));
}

TEST(WandbFileTest, ATornRecordIsCutOff) {
  const Scratch scratch;
  const std::string path = scratch.path("run.wandb"), whole = read_text(kGolden);
  const std::string rows = whole.substr(0, cut_of((write_text(path, whole), path), 20).size());
  write_text(path, rows + whole.substr(rows.size(), 100));
  EXPECT_EQ(cut_of(path, 25), rows);
  std::string damaged = whole;
  damaged[rows.size() + 50] ^= 1;
  write_text(path, damaged);
  EXPECT_EQ(cut_of(path, 25), rows);
}

TEST(WandbFileTest, AnotherFileIsNotTakenForOne) {
  const Scratch scratch;
  PosixDisk disk;
  write_text(scratch.path("run.wandb"), "no file of W&B");
  EXPECT_THROW(WandbFile(disk, scratch.path("run.wandb")).resume(0), OperatingError);
}

}  // namespace
}  // namespace tutti
