#include "models/layers/resnet/stages.h"

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "models/layers/blocks.h"
#include "runtime/error.h"

namespace tutti {
namespace {

struct StagePlan {
  bool bottlenecks = false;
  std::array<int64_t, kResNetStages> blocks = {};  // of each stage
};

const std::map<int64_t, StagePlan>& stage_plans() {
  static const std::map<int64_t, StagePlan> all = {{18, {false, {2, 2, 2, 2}}},
                                                   {34, {false, {3, 4, 6, 3}}},
                                                   {50, {true, {3, 4, 6, 3}}},
                                                   {101, {true, {3, 4, 23, 3}}},
                                                   {152, {true, {3, 8, 36, 3}}}};
  return all;
}

const StagePlan& stage_plan(int64_t depth) {
  TUTTI_ASSERT(has_resnet_depth(depth), "there is no ResNet of this depth");
  return stage_plans().at(depth);
}

std::shared_ptr<Layer> residual(const StagePlan& plan, int64_t in_channels, int64_t channels,
                                int64_t stride) {
  if (plan.bottlenecks) return std::make_shared<Bottleneck>(in_channels, channels, stride);
  return std::make_shared<BasicBlock>(in_channels, channels, stride);
}

}  // namespace

bool has_resnet_depth(int64_t depth) { return stage_plans().contains(depth); }

int64_t resnet_channels(int64_t depth, int64_t width, int64_t index) {
  return (stage_plan(depth).bottlenecks ? Bottleneck::kExpansion : 1) * (width << index);
}

std::shared_ptr<Layer> resnet_stage(int64_t depth, int64_t width, int64_t index) {
  const StagePlan& plan = stage_plan(depth);
  const int64_t channels = width << index;
  const int64_t out_channels = resnet_channels(depth, width, index);
  const int64_t in_channels = index == 0 ? width : out_channels / 2;
  std::vector<std::shared_ptr<Layer>> chain{residual(plan, in_channels, channels, index == 0 ? 1 : 2)};
  for (int64_t i = 1; i < plan.blocks[static_cast<std::size_t>(index)]; ++i)
    chain.push_back(residual(plan, out_channels, channels, 1));
  return std::make_shared<Sequential>(std::move(chain));
}

}  // namespace tutti
