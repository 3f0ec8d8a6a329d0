#include "models/zoo/resnet.h"

#include <array>
#include <map>

#include "models/layers/activation.h"
#include "models/layers/blocks.h"
#include "models/layers/conv.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/layers/pool.h"
#include "models/zoo/sample_checks.h"
#include "models/zoo/targets.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int64_t kStages = 4;

struct Plan {
  bool bottlenecks = false;
  std::array<int64_t, kStages> blocks = {};  // of each stage
};

const std::map<int64_t, Plan>& plans() {
  static const std::map<int64_t, Plan> all = {{18, {false, {2, 2, 2, 2}}},
                                              {34, {false, {3, 4, 6, 3}}},
                                              {50, {true, {3, 4, 6, 3}}},
                                              {101, {true, {3, 4, 23, 3}}}};
  return all;
}

const Plan& plan_of(int64_t depth) {
  TUTTI_ASSERT(ResNet::has_depth(depth), "there is no ResNet of this depth");
  return plans().at(depth);
}

int64_t expansion(const Plan& plan) { return plan.bottlenecks ? Bottleneck::kExpansion : 1; }

std::shared_ptr<Layer> block(const Plan& plan, int64_t in_channels, int64_t channels, int64_t stride) {
  if (plan.bottlenecks) return std::make_shared<Bottleneck>(in_channels, channels, stride);
  return std::make_shared<BasicBlock>(in_channels, channels, stride);
}

// Stage 0 has the stem's resolution and channels; each next one half and twice as many.
std::shared_ptr<Layer> stage(const Plan& plan, int64_t width, int64_t index) {
  const int64_t channels = width << index;
  const int64_t out_channels = expansion(plan) * channels;
  const int64_t in_channels = index == 0 ? width : out_channels / 2;
  std::vector<std::shared_ptr<Layer>> chain{block(plan, in_channels, channels, index == 0 ? 1 : 2)};
  for (int64_t i = 1; i < plan.blocks[index]; ++i) chain.push_back(block(plan, out_channels, channels, 1));
  return std::make_shared<Sequential>(std::move(chain));
}

std::shared_ptr<Layer> stem(const ResNetOptions& o) {
  return std::make_shared<Conv2d>(Conv2dOptions{.in_channels = o.in_channels,
                                                .out_channels = o.width,
                                                .kernel_size = o.small_images ? 3 : 7,
                                                .stride = o.small_images ? 1 : 2,
                                                .padding = o.small_images ? 1 : 3});
}

std::shared_ptr<Layer> pooling(const ResNetOptions& o) {
  if (o.small_images) return std::make_shared<Identity>();
  return std::make_shared<MaxPool2d>(3, 2, 1);
}

}  // namespace

bool ResNet::has_depth(int64_t depth) { return plans().count(depth) > 0; }

ResNet::ResNet(const ResNetOptions& options)
    : conv1_(add_slot("conv1", stem(options))),
      bn1_(add_slot("bn1", std::make_shared<BatchNorm2d>(options.width))),
      relu_(add_slot("relu", std::make_shared<ReLU>(/*in_place=*/true))),
      maxpool_(add_slot("maxpool", pooling(options))) {
  const Plan& plan = plan_of(options.depth);
  for (int64_t i = 0; i < kStages; ++i)
    stages_.push_back(&add_slot("layer" + std::to_string(i + 1), stage(plan, options.width, i)));
  avgpool_ = &add_slot("avgpool", std::make_shared<AdaptiveAvgPool2d>());
  const int64_t features = expansion(plan) * (options.width << (kStages - 1));
  fc_ = &add_slot("fc", std::make_shared<Linear>(features, options.num_classes));
}

// With channels last, oneDNN does not reorder inputs.
TensorTree ResNet::forward(const Batch& batch) {
  const at::Tensor images = batch["input"].contiguous(at::MemoryFormat::ChannelsLast);
  at::Tensor x = maxpool_(relu_(bn1_(conv1_(images))));
  for (const Slot* stage : stages_) x = (*stage)(x);
  return (*fc_)((*avgpool_)(x).flatten(1));
}

ModelPtr ResNetOptions::make(const Setting& section, const SampleSpec& samples) const {
  ResNetOptions options = *this;
  options.in_channels = image_channels(section, samples);
  if (!ResNet::has_depth(depth)) section.at("depth").fail("expected 18, 34, 50 or 101");
  positive(section.at("width"));
  const TargetPlan targets = plan_targets(section, samples);
  options.num_classes = targets.outputs;
  auto model = std::make_shared<ResNet>(options);
  model->set_labels(targets.has_labels);
  return model;
}

}  // namespace tutti
