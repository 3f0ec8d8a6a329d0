#include "io/formats/run_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::IsEmpty;

RunMetrics read(const std::string& lines) {
  const Scratch scratch;
  write_text(scratch.path("metrics.jsonl"), lines);
  return RunMetrics::read(scratch.path("metrics.jsonl"));
}

TEST(RunMetricsTest, FiguresAreThoseOfTheNewestWholeStep) {
  const RunMetrics metrics = read(R"({"step": 1, "epoch": 1, "loss": 2.0, "lr": 0.1})"
                                  "\n"
                                  R"({"step": 2, "epoch": 2, "loss": 1.5, "lr": 0.1, "metrics/train/a": 0.5})"
                                  "\n"
                                  R"({"step": 3, "epoch": 2, "loss": 1.0, "lr": 0.1)");
  EXPECT_EQ(metrics.step, 2);
  EXPECT_EQ(metrics.epoch, 2);
  EXPECT_EQ(metrics.figure("loss"), 1.5);
  EXPECT_TRUE(std::isnan(metrics.figure("accuracy")));
  EXPECT_THAT(metrics.evaluated, IsEmpty()) << "metrics of training are none of an evaluation";
}

TEST(RunMetricsTest, TheBestOfALossIsTheLeast) {
  const RunMetrics metrics =
      read(R"({"step": 1, "epoch": 1, "metrics/eval/CrossEntropy": 2.0, "metrics/eval/Accuracy": 0.5})"
           "\n"
           R"({"step": 2, "epoch": 1, "metrics/eval/CrossEntropy": 1.0, "metrics/eval/Accuracy": 0.75})"
           "\n"
           R"({"step": 3, "epoch": 1, "metrics/eval/CrossEntropy": 1.5, "metrics/eval/Accuracy": "nan"})"
           "\n");
  ASSERT_EQ(metrics.evaluated.size(), 2U);
  EXPECT_EQ(metrics.evaluated[0].name, "eval/CrossEntropy");
  EXPECT_EQ(metrics.evaluated[0].last, 1.5);
  EXPECT_EQ(metrics.evaluated[0].best, 1.0);
  EXPECT_EQ(metrics.evaluated[0].best_step, 2);
  EXPECT_EQ(metrics.evaluated[1].best, 0.75);
}

TEST(RunMetricsTest, ANumberIsBetterThanNone) {
  RunMetrics metrics;
  metrics.add_evaluation("eval/loss", std::nan(""), 1);
  metrics.add_evaluation("eval/loss", 3.0, 2);
  metrics.add_evaluation("eval/loss", std::nan(""), 3);
  EXPECT_EQ(metrics.evaluated[0].best, 3.0);
  EXPECT_EQ(metrics.evaluated[0].best_step, 2);
  EXPECT_TRUE(std::isnan(metrics.evaluated[0].last));
}

// A file system that lost data leaves a hole: a terabyte of zeros, which take no place.
TEST(RunMetricsTest, AHoleInTheFileIsIgnored) {
  const Scratch scratch;
  const std::string path = scratch.path("metrics.jsonl");
  const auto line = [](int step) {
    return "{\"step\": " + std::to_string(step) + R"(, "epoch": 1, "lr": 0.1, "loss": 2.5})" + '\n';
  };
  write_text(path, line(1) + R"({"step": 2, "lr": )");
  std::filesystem::resize_file(path, uint64_t{1} << 40);
  EXPECT_EQ(RunMetrics::read(path).step, 1);
  std::ofstream(path, std::ios::app) << "0.1}\n" << line(3);
  EXPECT_EQ(RunMetrics::read(path).step, 3);
  EXPECT_EQ(
      read(line(1) + "{\"step\": 2, \"lr\": 0.1, \"text\": \"" + std::string(1 << 20, 'x') + "\"}\n").step, 1)
      << "too long a line";
}

TEST(RunMetricsTest, WithoutAFileThereIsNothing) {
  const RunMetrics metrics = RunMetrics::read("no/such/file");
  EXPECT_EQ(metrics.step, 0);
  EXPECT_THAT(metrics.evaluated, IsEmpty());
}

}  // namespace
}  // namespace tutti
