#include "collectives/mesh.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/error.h"

namespace tutti {

Mesh::Mesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {
  for (const MeshAxis& axis : axes_) {
    TUTTI_ASSERT(axis.size >= 1, "mesh axis " + axis.name + " is empty");
    TUTTI_ASSERT(&axes_[index(axis.name)] == &axis, "two mesh axes are called " + axis.name);
  }
}

int Mesh::size() const {
  int product = 1;
  for (const MeshAxis& axis : axes_) product *= axis.size;
  return product;
}

std::size_t Mesh::index(const std::string& axis) const {
  const auto place =
      std::find_if(axes_.begin(), axes_.end(), [&](const MeshAxis& a) { return a.name == axis; });
  TUTTI_ASSERT(place != axes_.end(), "the mesh has no axis " + axis);
  return place - axes_.begin();
}

int Mesh::axis_size(const std::string& axis) const { return axes_[index(axis)].size; }

std::vector<int> Mesh::ranks() const {
  std::vector<int> all(static_cast<std::size_t>(size()));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<int> Mesh::coordinates(int rank) const {
  TUTTI_ASSERT(rank >= 0 && rank < size(), "rank " + std::to_string(rank) + " is not on the mesh");
  std::vector<int> place(axes_.size());
  for (std::size_t i = axes_.size(); i-- > 0;) {
    place[i] = rank % axes_[i].size;
    rank /= axes_[i].size;
  }
  return place;
}

int Mesh::coordinate(int rank, const std::string& axis) const { return coordinates(rank)[index(axis)]; }

std::vector<int> Mesh::peers(int rank, const std::vector<std::string>& axes) const {
  std::vector<bool> varies(axes_.size(), false);
  for (const std::string& axis : axes) varies[index(axis)] = true;
  const std::vector<int> mine = coordinates(rank);
  std::vector<int> peers;
  for (int other = 0; other < size(); ++other) {
    const std::vector<int> theirs = coordinates(other);
    bool same_elsewhere = true;
    for (std::size_t i = 0; i < axes_.size(); ++i) same_elsewhere &= varies[i] || theirs[i] == mine[i];
    if (same_elsewhere) peers.push_back(other);
  }
  return peers;
}

Groups make_groups(std::shared_ptr<Group> world, const Mesh& mesh, int rank, const MakeGroup& make) {
  Groups groups{std::move(world)};
  if (mesh.axis_size(kShardAxis) == 1) return groups;
  const auto add = [&](GroupRole role, const char* axis) {
    groups[static_cast<std::size_t>(role)] = make(mesh.peers(rank, {axis}));
  };
  add(GroupRole::kGathers, kShardAxis);
  add(GroupRole::kReductions, kShardAxis);
  if (mesh.axis_size(kReplicateAxis) > 1) add(GroupRole::kReplicas, kReplicateAxis);
  return groups;
}

}  // namespace tutti
