#pragma once

#include <memory>
#include <string>

#include "models/layers/layer.h"

namespace tutti {

// Makes a layer from its PyTorch text: "Conv2d(1, 8, kernel_size=(3, 3), padding=1, bias=False)", "ReLU".
// Supported, with torch's arguments and defaults: Linear, Conv1d, Conv2d, BatchNorm1d, BatchNorm2d,
// BatchNorm3d, LayerNorm, GroupNorm, ReLU, LeakyReLU, GELU, SiLU, Sigmoid, Tanh, Identity, Flatten(),
// MaxPool2d, AvgPool2d, AdaptiveAvgPool2d, Dropout. Throws UserError for any other layer, argument or
// value.
std::shared_ptr<Layer> make_layer(const std::string& text);

}  // namespace tutti
