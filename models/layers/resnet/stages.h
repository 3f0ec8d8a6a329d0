#pragma once

#include <cstdint>
#include <memory>

#include "models/layers/layer.h"

namespace tutti {

// The four stages of torchvision's ResNets, "layer1" to "layer4": BasicBlocks (18 and 34 layers) or
// Bottlenecks (50, 101 and 152).
constexpr int64_t kResNetStages = 4;

bool has_resnet_depth(int64_t depth);

// Channels that stage `index`, from 0, gives. `width`: channels of the stem.
int64_t resnet_channels(int64_t depth, int64_t width, int64_t index);

// Stage 0 has the stem's resolution; each next one half.
std::shared_ptr<Layer> resnet_stage(int64_t depth, int64_t width, int64_t index);

}  // namespace tutti
