#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <utility>

#include "data/transforms/options.h"
#include "data/transforms/transform.h"
#include "tensors/draws.h"

namespace tutti {

// The images [..., H, W] without some rows and columns, the same in all images, in a new tensor: int((1 - p)
// * size) remain, in their order. composer.functional.colout_batch.
at::Tensor colout_batch(const at::Tensor& input, Draws& draws, const ColOutOptions& options = {});
// Images and targets; the same rows and columns are dropped from the target if the options say so.
std::pair<at::Tensor, at::Tensor> colout_batch(const at::Tensor& input, const at::Tensor& target,
                                               Draws& draws, const ColOutOptions& options = {});

// Drops other rows and columns of each image. composer.algorithms.colout.ColOutTransform.
TransformPtr colout_transform(double p_row, double p_col);

}  // namespace tutti
