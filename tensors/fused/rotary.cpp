#include "tensors/fused/rotary.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "tensors/vectors.h"

namespace tutti {
namespace {

constexpr int64_t kLeastTokens = 32;  // of a thread

// `sign` -1 turns back.
TUTTI_VECTORS void turn(const float* __restrict x, const float* __restrict cos, const float* __restrict sin,
                        float sign, int64_t half, float* __restrict to) {
  for (int64_t i = 0; i < half; ++i) {
    const float s = sign * sin[i];
    to[i] = x[i] * cos[i] - x[half + i] * s;
    to[half + i] = x[half + i] * cos[i] + x[i] * s;
  }
}

// Angles [T, half] or [N, T, half], contiguous.
at::Tensor turned(const at::Tensor& given, const at::Tensor& cos, const at::Tensor& sin, float sign) {
  const at::Tensor x = given.stride(-1) == 1 ? given : given.contiguous();
  const int64_t rows = x.size(0), length = x.size(1), heads = x.size(2), half = x.size(3) / 2;
  at::Tensor out = at::empty(x.sizes(), x.options());
  const bool by_row = cos.dim() == 3;
  const float *from = x.const_data_ptr<float>(), *c = cos.const_data_ptr<float>(),
              *s = sin.const_data_ptr<float>();
  float* const to = out.data_ptr<float>();
  at::parallel_for(0, rows * length, kLeastTokens, [&](int64_t first, int64_t last) {
    for (int64_t token = first; token < last; ++token) {
      const int64_t row = token / length, place = token % length;
      const int64_t angle = (by_row ? token : place) * half;
      for (int64_t h = 0; h < heads; ++h)
        turn(from + row * x.stride(0) + place * x.stride(1) + h * x.stride(2), c + angle, s + angle, sign,
             half, to + (token * heads + h) * 2 * half);
    }
  });
  return out;
}

class Rotation : public torch::autograd::Function<Rotation> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& cos, const at::Tensor& sin) {
    context->save_for_backward({cos, sin});
    return turned(x, cos, sin, 1.0F);
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& gradients) {
    const auto saved = context->get_saved_variables();
    return {turned(gradients[0], saved[0], saved[1], -1.0F), at::Tensor(), at::Tensor()};
  }
};

bool turns_at_once(const at::Tensor& x, const at::Tensor& cos) {
  const bool fits = cos.dim() == 2 || cos.size(0) == x.size(0);
  return x.is_cpu() && x.scalar_type() == at::kFloat && cos.scalar_type() == at::kFloat && fits &&
         cos.size(-2) == x.size(1);
}

}  // namespace

at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  if (turns_at_once(x, cos)) return Rotation::apply(x, cos.contiguous(), sin.contiguous());
  const at::Tensor c = cos.unsqueeze(-2), s = sin.unsqueeze(-2);
  const auto halves = x.chunk(2, -1);
  return at::cat({halves[0] * c - halves[1] * s, halves[1] * c + halves[0] * s}, -1).to(x.scalar_type());
}

}  // namespace tutti
