#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/text.h"

namespace tutti {
namespace {

TEST(PlainPathTest, AFolderIsTheSameHoweverItIsWritten) {
  const std::string here = std::filesystem::current_path().string();
  const std::vector<std::string> ways = {"run", "run/", "./run", "run//", "other/../run", here + "/run"};
  for (const auto& written : ways) EXPECT_EQ(plain_path(written), here + "/run") << written;
  EXPECT_EQ(plain_path("/"), "/");
}

TEST(PlainPathTest, OnlyDirectChildrenLieInAFolder) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_TRUE(lies_in("run/checkpoints/ep1-ba15/", here + "/run//checkpoints/"));
  EXPECT_TRUE(lies_in(here + "/run/checkpoints/latest", "run/checkpoints"));
  EXPECT_FALSE(lies_in("run/checkpoints/earlier/ep1-ba15", "run/checkpoints"));
  EXPECT_FALSE(lies_in("run/checkpoints", "run/checkpoints"));
}

}  // namespace
}  // namespace tutti
