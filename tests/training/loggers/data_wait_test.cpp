#include "training/loggers/data_wait.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

std::string advice(double wait_ms, double read_ms, double disk_ms, int threads, int cores) {
  DataWait wait;
  for (int step = 0; step < 2; ++step)
    wait.add({.step_ms = 100, .data_wait_ms = wait_ms, .data_read_ms = read_ms, .data_disk_ms = disk_ms});
  return wait.text(threads, cores);
}

TEST(DataWaitTest, SaysWhatWouldSaveIt) {
  EXPECT_EQ(advice(10, 10, 0, 0, 8), "") << "it is not felt";
  EXPECT_EQ(advice(25, 0, 0, 0, 8), "25% waiting for data") << "nothing was read in that time";
  // 60 ms of a step train.
  EXPECT_EQ(advice(40, 100, 0, 0, 8), "40% waiting for data (num_workers = 2 would save 40%)");
  EXPECT_EQ(advice(40, 100, 0, 1, 1), "40% waiting for data") << "there is no other core";
  EXPECT_EQ(advice(40, 100, 30, 1, 1), "40% waiting for data (a faster disk would save 30%)");
  EXPECT_EQ(advice(40, 200, 100, 2, 3),
            "40% waiting for data (num_workers = 3 would save 33%, a faster disk 40%)");
}

}  // namespace
}  // namespace tutti
