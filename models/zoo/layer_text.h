#pragma once

#include <memory>
#include <string>

#include "models/layers/layer.h"

namespace tutti {

// Makes a layer from its PyTorch text: "Conv2d(1, 8, kernel_size=(3, 3), padding=1, bias=False)", "ReLU".
// Supported, with torch's arguments and defaults: Linear, Conv1d, Conv2d, BatchNorm1d, BatchNorm2d,
// BatchNorm3d, LayerNorm, GroupNorm, RMSNorm, ReLU, LeakyReLU, GELU, SiLU, Sigmoid, Tanh, Softmax, Identity,
// Flatten(), MaxPool2d, AvgPool2d, AdaptiveAvgPool2d, Dropout, ConvTranspose2d, Upsample, Embedding; LSTM and
// GRU with batch_first=True, which give the outputs alone. A size may be a product: 28*28.
//
// Made of other layers: Sequential(A, B), Residual(A, B), which is x + B(A(x)), or shortcut(x) in place of x
// with shortcut=C, and Concat(A, B, dim=1), the outputs of A and B. Select(dim, index) is torch.select:
// Select(1, -1) is a sequence's last step. Throws UserError for any other layer, argument or value.
std::shared_ptr<Layer> make_layer(const std::string& text);

}  // namespace tutti
