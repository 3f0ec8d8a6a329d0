#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "models/layers/layer.h"

namespace tutti {

class GoldenCase;

// What a client's models allow: of the largest number of a tensor.
inline constexpr double kOfOutputs = 1e-5, kOfGradients = 1e-4;

// Asserts (gtest) that no number is off by more than `tolerance` times the largest |wanted|.
void expect_near(const at::Tensor& got, const at::Tensor& wanted, double tolerance, const std::string& what);

// Asserts (gtest) the gradients "out/grads/NAME" of a case, to kOfGradients. Tensors whose gradients are a
// hundredth of the model's largest are compared as if they had that size: rounding alone gives some of them.
void expect_gradients_near(Layer& model, const GoldenCase& golden);

}  // namespace tutti
