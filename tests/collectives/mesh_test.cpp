#include "collectives/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "collectives/local/group.h"

namespace tutti {
namespace {

using testing::ElementsAre;

TEST(MeshTest, TheLastAxisHoldsNeighbours) {
  const Mesh mesh({{"replicate", 2}, {"shard", 3}});
  EXPECT_EQ(mesh.size(), 6);
  EXPECT_THAT(mesh.peers(4, {"shard"}), ElementsAre(3, 4, 5));
  EXPECT_THAT(mesh.peers(4, {"replicate"}), ElementsAre(1, 4));
}

TEST(MeshTest, SeveralAxesTogetherSpanTheirProduct) {
  const Mesh mesh({{"pipe", 2}, {"replicate", 2}, {"shard", 2}});
  EXPECT_THAT(mesh.peers(5, {"replicate", "shard"}), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(mesh.peers(5, {"pipe", "shard"}), ElementsAre(0, 1, 4, 5));
}

TEST(MeshTest, NoAxisLeavesARankAlone) { EXPECT_THAT(Mesh({{"shard", 4}}).peers(2, {}), ElementsAre(2)); }

TEST(MeshTest, CoordinatesAreRowMajor) {
  const Mesh mesh({{"replicate", 2}, {"shard", 3}});
  EXPECT_EQ(mesh.coordinate(5, "replicate"), 1);
  EXPECT_EQ(mesh.coordinate(5, "shard"), 2);
  EXPECT_EQ(mesh.axis_size("shard"), 3);
}

TEST(MeshDeathTest, AxesHaveDifferentNames) {
  EXPECT_DEATH(Mesh({{"shard", 2}, {"shard", 2}}), "two mesh axes are called shard");
}

std::vector<std::vector<int>> ranks_of_groups(const Mesh& mesh, int rank) {
  std::vector<std::vector<int>> made;
  const auto make = [&](const std::vector<int>& ranks) {
    made.push_back(ranks);
    return LocalFabric::make(ranks)->group(0);
  };
  const Groups groups = make_groups(LocalFabric::make(mesh.ranks())->group(0), mesh, rank, make);
  EXPECT_EQ(std::ranges::count_if(groups, [](const auto& one) { return one != nullptr; }),
            std::ssize(made) + 1);
  return made;
}

TEST(MeshTest, RanksThatShareHaveGroupsOfTheirOwn) {
  const auto mesh = [](int replicas, int shards) {
    return Mesh({{kReplicateAxis, replicas}, {kShardAxis, shards}});
  };
  EXPECT_THAT(ranks_of_groups(mesh(4, 1), 2), testing::IsEmpty());
  EXPECT_THAT(ranks_of_groups(mesh(1, 3), 2), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(0, 1, 2)));
  EXPECT_THAT(ranks_of_groups(mesh(2, 2), 2),
              ElementsAre(ElementsAre(2, 3), ElementsAre(2, 3), ElementsAre(0, 2)));
}

}  // namespace
}  // namespace tutti
