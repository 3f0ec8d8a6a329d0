#pragma once

#include <memory>
#include <vector>

#include "collectives/group.h"

namespace tutti {

// A backend: makes the groups of one rank, of whichever ranks a mesh puts together.
class GroupFactory {
 public:
  virtual ~GroupFactory() = default;
  virtual int rank() const = 0;  // of the world
  virtual int size() const = 0;

  // The group of `ranks` (ascending, this one among them). Every member asks for the same groups in the same
  // order; blocks until all have. A group of one needs nobody.
  virtual std::unique_ptr<Group> make(const std::vector<int>& ranks) = 0;
};

}  // namespace tutti
