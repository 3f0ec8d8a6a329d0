#pragma once

#include "collectives/group_factory.h"
#include "collectives/mpi/world.h"
#include "runtime/clock.h"

namespace tutti {

// The mpi backend; groups of one rank are local. World and clock outlive the factory and its groups.
class MpiGroupFactory final : public GroupFactory {
 public:
  MpiGroupFactory(const MpiWorld& world, const Clock& clock, Reduction reduction)
      : world_(world), clock_(clock), reduction_(reduction) {}

  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  std::unique_ptr<Group> make(const std::vector<int>& ranks) override;

 private:
  const MpiWorld& world_;
  const Clock& clock_;
  Reduction reduction_;
};

}  // namespace tutti
