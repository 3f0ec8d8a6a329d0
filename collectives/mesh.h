#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/group.h"

namespace tutti {

// A dimension of a mesh: {"replicate", 2}.
struct MeshAxis {
  std::string name;
  int size = 1;
};

// Arranges all ranks on named axes, row-major. Consecutive ranks, which usually share a host, differ on the
// last axis, so that axis should have the most traffic.
class Mesh {
 public:
  // The product of the sizes is the number of ranks. Names are unique.
  explicit Mesh(std::vector<MeshAxis> axes);

  const std::vector<MeshAxis>& axes() const { return axes_; }
  int size() const;
  int axis_size(const std::string& axis) const;
  std::vector<int> ranks() const;  // all, ascending

  // The rank's coordinate on `axis`.
  int coordinate(int rank, const std::string& axis) const;

  // The ranks that differ from `rank` on `axes` only, ascending, with `rank` itself.
  std::vector<int> peers(int rank, const std::vector<std::string>& axes) const;

 private:
  std::size_t index(const std::string& axis) const;
  std::vector<int> coordinates(int rank) const;

  std::vector<MeshAxis> axes_;
};

// The work of a group. Groups of the host do not wait for each other.
enum class GroupRole : uint8_t {
  kWorld,       // all ranks: values that are the same everywhere
  kGathers,     // ranks that share parameters: parameters
  kReductions,  // the same ranks: gradients
  kReplicas,    // ranks with the same part of the parameters: sums of gradients
};
inline constexpr int kGroupRoles = 4;

// The groups of a rank, by role; null for a role without collectives.
using Groups = std::array<std::shared_ptr<Group>, kGroupRoles>;

// The mesh axes of ranks that share parameters, and of ranks with the same part of the parameters.
inline constexpr const char* kShardAxis = "shard";
inline constexpr const char* kReplicateAxis = "replicate";

// The groups of `rank`: `world`, and the other roles if ranks share parameters. All ranks make their groups
// in the same order.
using MakeGroup = std::function<std::shared_ptr<Group>(const std::vector<int>& ranks)>;
Groups make_groups(std::shared_ptr<Group> world, const Mesh& mesh, int rank, const MakeGroup& make);

}  // namespace tutti
