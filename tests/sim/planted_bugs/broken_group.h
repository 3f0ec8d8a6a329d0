#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages/verdict.h"
#include "collectives/group.h"
#include "sim/simulate/sim_world.h"

namespace tutti {

// A group that hands everything on; what breaks something overrides it.
class GroupBelow : public Group {
 public:
  explicit GroupBelow(std::shared_ptr<Group> below) : below_(std::move(below)) {}
  int rank() const override { return below_->rank(); }
  int size() const override { return below_->size(); }
  int world_rank(int rank) const override { return below_->world_rank(rank); }
  bool ready() override { return below_->ready(); }
  AllocationPtr allocate(int64_t bytes) override { return below_->allocate(bytes); }
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override {
    return below_->all_reduce(inout, label);
  }
  WorkPtr reduce_scatter(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override {
    return below_->reduce_scatter(input, out, cut, label);
  }
  WorkPtr all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override {
    return below_->all_gather(input, out, cut, label);
  }
  WorkPtr broadcast(at::Tensor inout, int root, const std::string& label) override {
    return below_->broadcast(inout, root, label);
  }
  WorkPtr barrier(const std::string& label) override { return below_->barrier(label); }
  std::vector<CollectiveHeader> posted(int count) const override { return below_->posted(count); }

 protected:
  std::shared_ptr<Group> below_;
};

template <class Broken>
std::function<SimSeams()> group_bug() {
  return [] {
    SimSeams seams;
    seams.group = [](std::unique_ptr<Group> group, int) -> std::unique_ptr<Group> {
      return std::make_unique<Broken>(std::move(group));
    };
    return seams;
  };
}

// The place of the flag in an encoded verdict.
inline int64_t place_of(double Verdict::*flag) {
  Verdict verdict;
  const at::Tensor without = verdict.encode(0, 1);
  verdict.*flag = 1;
  const at::Tensor with = verdict.encode(0, 1);
  int64_t at = 0;
  while (with.const_data_ptr<double>()[at] == without.const_data_ptr<double>()[at]) ++at;
  return at;
}

}  // namespace tutti
