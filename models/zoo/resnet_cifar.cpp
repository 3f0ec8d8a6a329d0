#include "models/zoo/resnet_cifar.h"

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

std::shared_ptr<Layer> stem(const ResNetCifarOptions& o) {
  return std::make_shared<Conv2d>(
      Conv2dOptions{.in_channels = o.in_channels, .out_channels = o.width, .kernel_size = 3, .padding = 1});
}

std::shared_ptr<Layer> stage(int64_t blocks, int64_t in_channels, int64_t out_channels, int64_t stride) {
  std::vector<std::shared_ptr<Layer>> chain{std::make_shared<BasicBlock>(in_channels, out_channels, stride)};
  for (int64_t i = 1; i < blocks; ++i)
    chain.push_back(std::make_shared<BasicBlock>(out_channels, out_channels, 1));
  return std::make_shared<Sequential>(std::move(chain));
}

}  // namespace

ResNetCifar::ResNetCifar(const ResNetCifarOptions& options)
    : conv1_(add_slot("conv1", stem(options))),
      bn1_(add_slot("bn1", std::make_shared<BatchNorm2d>(options.width))),
      relu_(add_slot("relu", std::make_shared<ReLU>(/*in_place=*/true))) {
  TUTTI_ASSERT(options.depth >= 8 && (options.depth - 2) % 6 == 0, "the depth is not 6 n + 2");
  const int64_t blocks = (options.depth - 2) / 6;
  const int64_t width = options.width;
  stages_ = {&add_slot("layer1", stage(blocks, width, width, 1)),
             &add_slot("layer2", stage(blocks, width, 2 * width, 2)),
             &add_slot("layer3", stage(blocks, 2 * width, 4 * width, 2))};
  avgpool_ = &add_slot("avgpool", std::make_shared<AdaptiveAvgPool2d>());
  fc_ = &add_slot("fc", std::make_shared<Linear>(4 * width, options.num_classes));
}

// With channels last, oneDNN does not reorder inputs: a step on the CPU takes a fifth less time.
TensorTree ResNetCifar::forward(const Batch& batch) {
  const at::Tensor images = batch["input"].contiguous(at::MemoryFormat::ChannelsLast);
  at::Tensor x = relu_(bn1_(conv1_(images)));
  for (const Slot* stage : stages_) x = (*stage)(x);
  return (*fc_)((*avgpool_)(x).flatten(1));
}

ModelPtr ResNetCifarOptions::make(const Setting& section, const SampleSpec& samples) const {
  ResNetCifarOptions options = *this;
  options.in_channels = image_channels(section, samples);
  if (depth < 8 || depth % 6 != 2) section.at("depth").fail("expected 6 n + 2: 20, 32, 56, ...");
  positive(section.at("width"));
  const TargetPlan targets = plan_targets(section, samples);
  options.num_classes = targets.outputs;
  auto model = std::make_shared<ResNetCifar>(options);
  model->set_labels(targets.has_labels);
  return model;
}

}  // namespace tutti
