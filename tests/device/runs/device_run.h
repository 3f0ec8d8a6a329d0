#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/sharding/sharded_run.h"

namespace tutti {

enum class Where { kCpu, kEager, kLate };

// A training that a test runs on the CPU and on the test device.
struct DeviceRun {
  std::string recipe;  // without [device] and [sharding]
  Sharded sharded = {.ranks = 1};
  std::function<void(Job& job)> prepare = {};

  // In `folder`, or in one of its own. On the test device there must be no findings.
  ShardedRun run(Where where, const std::string& folder = {}) const;
};

// Lines of the recipe that choose the device, and the device's mode.
std::string on(Where where);

// The losses, evaluations and weights of the run on the test device are those on the CPU.
void expect_bits_of_the_cpu(const DeviceRun& run, Where where = Where::kLate);

// The test device reports what no test has asked for, and has autocast lists of the CPU.
class DeviceRunTest : public testing::Test {
 protected:
  DeviceRunTest();
  ~DeviceRunTest() override;
};

// Recipes of small models. [train] is the last section.
extern const std::string kSmallMlp, kSmallGpt, kSmallResnet;

// A small mlp for each loss of the catalog, by its name.
std::vector<std::pair<std::string, std::string>> small_mlps_by_loss();

// `text` with `before`, which occurs in it, replaced.
std::string replaced(std::string text, const std::string& before, const std::string& after);

}  // namespace tutti
