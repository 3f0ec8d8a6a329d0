#pragma once

#include <array>
#include <cstdint>
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

  // The rank's coordinate on `axis`.
  int coordinate(int rank, const std::string& axis) const;

  // The ranks that differ from `rank` on `axes` only, ascending, with `rank` itself.
  std::vector<int> peers(int rank, const std::vector<std::string>& axes) const;

 private:
  std::size_t index(const std::string& axis) const;
  std::vector<int> coordinates(int rank) const;

  std::vector<MeshAxis> axes_;
};

// What runs on a group of a rank. What runs on one group does not wait for another.
enum class GroupRole : uint8_t { kWorld };
inline constexpr int kGroupRoles = 1;

// The groups of a rank, by role.
using Groups = std::array<std::shared_ptr<Group>, kGroupRoles>;

}  // namespace tutti
