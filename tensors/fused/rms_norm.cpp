#include "tensors/fused/rms_norm.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>

#include "tensors/vectors.h"

namespace tutti {
namespace {

constexpr int64_t kLanes = 16;          // sums at once, in an order that is the same on all processors
constexpr int64_t kMostRowBlocks = 64;  // the gradients of weights are summed by blocks, whatever the threads
constexpr int64_t kLeastRows = 32;      // of a block

struct NormedRows {
  const float* x;
  const float* weight;
  int64_t columns;
};

float sum_of(const float (&lanes)[kLanes]) {
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  return sum;
}

TUTTI_VECTORS void normalise_rows(const NormedRows& rows, int64_t first, int64_t last, double eps, float* out,
                                  float* scales) {
  for (int64_t r = first; r < last; ++r) {
    const float* const x = rows.x + r * rows.columns;
    float* const to = out + r * rows.columns;
    float lanes[kLanes] = {};
    int64_t c = 0;
    for (; c + kLanes <= rows.columns; c += kLanes)
      for (int64_t l = 0; l < kLanes; ++l) lanes[l] += x[c + l] * x[c + l];
    for (int64_t l = 0; c + l < rows.columns; ++l) lanes[l] += x[c + l] * x[c + l];
    const float mean = sum_of(lanes) / static_cast<float>(rows.columns);
    const float scale = 1.0F / std::sqrt(mean + static_cast<float>(eps));
    scales[r] = scale;
    for (int64_t i = 0; i < rows.columns; ++i) to[i] = x[i] * scale * rows.weight[i];
  }
}

// Adds to `weight_gradient`, [columns].
TUTTI_VECTORS void differentiate_rows(const NormedRows& rows, int64_t first, int64_t last,
                                      const float* gradients, const float* scales, float* dx,
                                      float* weight_gradient) {
  for (int64_t r = first; r < last; ++r) {
    const float* const x = rows.x + r * rows.columns;
    const float* const g = gradients + r * rows.columns;
    float* const to = dx + r * rows.columns;
    const float scale = scales[r];
    float lanes[kLanes] = {};
    int64_t c = 0;
    for (; c + kLanes <= rows.columns; c += kLanes)
      for (int64_t l = 0; l < kLanes; ++l) lanes[l] += g[c + l] * rows.weight[c + l] * x[c + l];
    for (int64_t l = 0; c + l < rows.columns; ++l) lanes[l] += g[c + l] * rows.weight[c + l] * x[c + l];
    const float along = sum_of(lanes) * scale * scale / static_cast<float>(rows.columns);
    for (int64_t i = 0; i < rows.columns; ++i) {
      weight_gradient[i] += g[i] * x[i] * scale;
      to[i] = scale * (g[i] * rows.weight[i] - x[i] * along);
    }
  }
}

NormedRows rows_of(const at::Tensor& x, const at::Tensor& weight) {
  return {x.const_data_ptr<float>(), weight.const_data_ptr<float>(), x.size(1)};
}

// `x`: [rows, columns], contiguous, as the weight.
class RowNorm : public torch::autograd::Function<RowNorm> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight, double eps) {
    at::Tensor out = at::empty_like(x), scales = at::empty({x.size(0)}, x.options());
    const NormedRows rows = rows_of(x, weight);
    float *to = out.data_ptr<float>(), *scales_to = scales.data_ptr<float>();
    at::parallel_for(0, x.size(0), kLeastRows, [&](int64_t first, int64_t last) {
      normalise_rows(rows, first, last, eps, to, scales_to);
    });
    context->save_for_backward({x, weight, scales});
    return out;
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const at::Tensor given = gradients[0].contiguous();
    const int64_t count = x.size(0),
                  each = std::max(kLeastRows, (count + kMostRowBlocks - 1) / kMostRowBlocks);
    const int64_t blocks = (count + each - 1) / each;
    at::Tensor dx = at::empty_like(x), weight_sums = at::zeros({blocks, x.size(1)}, x.options());
    const NormedRows rows = rows_of(x, weight);
    const float *from = given.const_data_ptr<float>(), *scales = saved[2].const_data_ptr<float>();
    float *to = dx.data_ptr<float>(), *sums = weight_sums.data_ptr<float>();
    at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b)
        differentiate_rows(rows, b * each, std::min(count, (b + 1) * each), from, scales, to,
                           sums + b * rows.columns);
    });
    return {dx, weight_sums.sum(0), at::Tensor()};
  }
};

bool normalises_at_once(const at::Tensor& x, const at::Tensor& weight) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat && x.numel() > 0 &&
         weight.dim() == 1 && weight.size(0) == x.size(-1);
}

}  // namespace

at::Tensor rms_normalised(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor wide = x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
  if (normalises_at_once(wide, weight))
    return RowNorm::apply(wide.reshape({-1, x.size(-1)}).contiguous(), weight.contiguous(), eps)
        .view(x.sizes());
  const at::Tensor scale = at::rsqrt(wide.pow(2).mean(-1, /*keepdim=*/true) + eps);
  return wide * scale * weight;
}

}  // namespace tutti
