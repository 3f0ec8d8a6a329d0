#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "collectives/mpi/group.h"
#include "collectives/mpi/world.h"
#include "runtime/clock.h"

namespace tutti {

// Tests that every rank runs alike, under mpirun.
class MpiTest : public testing::Test {
 public:
  static MpiWorld* world;  // set by main

 protected:
  int rank() const { return world->rank(); }
  int size() const { return world->size(); }
  std::vector<int> everyone() const;
  std::unique_ptr<MpiGroup> make_group() const;

  // Polls until it is done, and gives up after a minute.
  static void wait(const WorkPtr& work);

  // A copy of `tensor`, in one of the group's windows or not.
  static at::Tensor placed(Group& group, const at::Tensor& tensor, bool in_window);

  SystemClock clock_;
};

}  // namespace tutti
