#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>

#include "tests/golden/golden_file.h"
#include "tests/golden/trainer_case.h"

namespace tutti {
namespace {

// Cases that are skipped with the data of this folder, by reason. One more or one less is a failure.
const std::map<std::string, int> kSkipped = {{"a command draws its own numbers", 7},
                                             {"a rank draws for its own samples", 4},
                                             {"batch normalisation sees a rank's part of a batch", 7}};

std::string reason_of(const testing::TestResult& result) {
  for (int part = 0; part < result.total_part_count(); ++part)
    if (result.GetTestPartResult(part).skipped()) return result.GetTestPartResult(part).message();
  return "";
}

std::map<std::string, int> skipped() {
  std::map<std::string, int> found;
  const auto& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s)
    for (int t = 0; t < all.GetTestSuite(s)->total_test_count(); ++t) {
      const testing::TestResult& result = *all.GetTestSuite(s)->GetTestInfo(t)->result();
      if (result.Skipped()) ++found[reason_of(result)];
    }
  return found;
}

class CountsSkipped final : public testing::Environment {
  void TearDown() override {
    auto found = skipped();
    for (const auto& [reason, count] : found) std::printf("skipped %d cases: %s\n", count, reason.c_str());
    found.erase(kNoPython);   // depends on the machine
    found.erase("at night");  // in VersionsGolden
    const auto& all = *testing::UnitTest::GetInstance();
    if (is_own_folder() && all.test_to_run_count() == all.total_test_count()) {
      EXPECT_THAT(found, testing::ContainerEq(kSkipped));
    }
  }
};

[[maybe_unused]] const auto* const kRegistered = testing::AddGlobalTestEnvironment(new CountsSkipped);

}  // namespace
}  // namespace tutti
