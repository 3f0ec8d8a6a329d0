#pragma once

#include <string>
#include <vector>

namespace tutti {

// One direction of a mesh: {"replicate", 2}.
struct MeshAxis {
  std::string name;
  int size = 1;
};

// All ranks laid out on named axes, row-major: ranks that differ by one differ on the last axis, which should
// therefore be the one with the most traffic (neighbours share a host).
class Mesh {
 public:
  // The sizes' product is the number of ranks. Names differ.
  explicit Mesh(std::vector<MeshAxis> axes);

  const std::vector<MeshAxis>& axes() const { return axes_; }
  int size() const;
  int axis_size(const std::string& axis) const;

  // Where `rank` stands on an axis.
  int coordinate(int rank, const std::string& axis) const;

  // The ranks that differ from `rank` on `axes` only, itself included, ascending.
  std::vector<int> peers(int rank, const std::vector<std::string>& axes) const;

 private:
  std::size_t index(const std::string& axis) const;
  std::vector<int> coordinates(int rank) const;

  std::vector<MeshAxis> axes_;
};

}  // namespace tutti
