#include "tensors/fused/layer_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <tuple>

#include "tensors/autograd.h"
#include "tensors/kernels/operator.h"

namespace tutti {
namespace {

constexpr int64_t kMostColumns = 4096;  // of the kernel, which has a row in its registers
constexpr int64_t kColumnsAtOnce = 4;

at::Tensor& norm_on_cpus(at::Tensor& out, at::Tensor& means, at::Tensor& scales, const at::Tensor& x,
                         const at::Tensor& weight, const at::Tensor& bias, double eps) {
  const auto [normal, mean, scale] = at::native_layer_norm(x, weight.sizes(), weight, bias, eps);
  means.copy_(mean.flatten());
  scales.copy_(scale.flatten());
  return out.copy_(normal);
}

at::Tensor& norm_gradients_on_cpus(at::Tensor& dx, at::Tensor& column_gradients, const at::Tensor& gradients,
                                   const at::Tensor& x, const at::Tensor& means, const at::Tensor& scales,
                                   const at::Tensor& weight) {
  const auto [x_gradient, weight_gradient, bias_gradient] =
      at::native_layer_norm_backward(gradients.to(at::kFloat), x, weight.sizes(), means.unsqueeze(1),
                                     scales.unsqueeze(1), weight, at::empty_like(weight), {true, true, true});
  column_gradients[0].copy_(weight_gradient);
  column_gradients[1].copy_(bias_gradient);
  return dx.copy_(x_gradient);
}

const auto& norm_operator() {
  static const auto norm = device_operator(
      "layer_norm_",
      "(Tensor(a!) out, Tensor(b!) means, Tensor(c!) scales, Tensor x, Tensor weight, Tensor bias, float "
      "eps) -> Tensor(a!)",
      norm_on_cpus);
  return norm;
}

const auto& norm_gradients_operator() {
  static const auto gradients = device_operator(
      "layer_norm_gradients_",
      "(Tensor(a!) dx, Tensor(b!) of_columns, Tensor gradients, Tensor x, Tensor means, Tensor scales, "
      "Tensor weight) -> Tensor(a!)",
      norm_gradients_on_cpus);
  return gradients;
}

// `x`: [rows, C].
class NarrowLayerNorm : public torch::autograd::Function<NarrowLayerNorm> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight, const at::Tensor& bias, double eps,
                            at::ScalarType dtype) {
    at::Tensor out = at::empty(x.sizes(), x.options().dtype(dtype));
    at::Tensor means = at::empty({x.size(0)}, x.options()), scales = at::empty_like(means);
    norm_operator().call(out, means, scales, x, weight, bias, eps);
    context->save_for_backward({x, means, scales, weight});
    return out;
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[3];
    at::Tensor dx = at::empty_like(x), column_gradients = at::empty({2, weight.numel()}, weight.options());
    norm_gradients_operator().call(dx, column_gradients, gradients[0].contiguous(), x, saved[1], saved[2],
                                   weight);
    return {dx, column_gradients[0], column_gradients[1], at::Tensor(), at::Tensor()};
  }
};

}  // namespace

bool has_narrow_layer_norm(const at::Tensor& x, const at::Tensor& weight) {
  if (x.scalar_type() != at::kFloat || weight.scalar_type() != at::kFloat || x.numel() == 0) return false;
  const int64_t columns = x.size(-1);
  if (weight.dim() != 1 || weight.size(0) != columns) return false;  // libtorch has an error for this
  return AutocastScope::current({x.device()}) && columns <= kMostColumns && columns % kColumnsAtOnce == 0 &&
         has_kernel_of(norm_operator(), x);
}

at::Tensor narrow_layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                             double eps) {
  const auto dtype = AutocastScope::current({x.device()}).value_or(at::kBFloat16);
  const at::Tensor rows = x.reshape({-1, x.size(-1)}).contiguous();
  return NarrowLayerNorm::apply(rows, weight.contiguous(), bias.contiguous(), eps, dtype).view(x.sizes());
}

}  // namespace tutti
