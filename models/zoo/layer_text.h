#pragma once

#include <memory>
#include <string>

#include "models/layers/layer.h"

namespace tutti {

// The layer that a text describes as PyTorch prints it, or as one writes it in Python:
// "Conv2d(1, 8, kernel_size=(3, 3), padding=1, bias=False)", "ReLU". Of torch.nn there are Linear, Conv2d
// (square, dilation 1), BatchNorm1d, BatchNorm2d and LayerNorm (affine), ReLU, LeakyReLU,
// GELU(approximate='tanh'), SiLU, Sigmoid, Tanh, Identity, Flatten, MaxPool2d, AvgPool2d,
// AdaptiveAvgPool2d(1) and Dropout, with torch's defaults. Throws UserError for any other layer, argument or
// value.
std::shared_ptr<Layer> make_layer(const std::string& text);

}  // namespace tutti
