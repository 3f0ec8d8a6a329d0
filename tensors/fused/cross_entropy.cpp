#include "tensors/fused/cross_entropy.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <string>

#include "runtime/error.h"
#include "tensors/kernels/cross_entropy.h"
#include "tensors/kernels/operator.h"

namespace tutti {
namespace {

constexpr int64_t kFewestClasses = 1024;

void require_index(int64_t index, int64_t classes) {
  if (index < 0 || index >= classes)
    throw UserError("class index " + std::to_string(index) + " is not in [0, " + std::to_string(classes) +
                    ")");
}

at::Tensor& losses_on_cpus(at::Tensor& losses, at::Tensor& log_sums, const at::Tensor& scores,
                           const at::Tensor& target, int64_t ignore_index) {
  const int64_t classes = scores.size(1);
  const auto* indices = target.const_data_ptr<int64_t>();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, scores.scalar_type(), "cross_entropy", [&] {
    const auto* from = scores.const_data_ptr<scalar_t>();
    at::parallel_for(0, scores.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        ExpSum sum;
        for (int64_t c = 0; c < classes; ++c) sum.add(static_cast<float>(from[row * classes + c]));
        const float log_sum = log_sums.mutable_data_ptr<float>()[row] = sum.log();
        float& loss = losses.mutable_data_ptr<float>()[row] = 0;
        if (indices[row] == ignore_index) continue;
        require_index(indices[row], classes);
        loss = log_sum - static_cast<float>(from[row * classes + indices[row]]);
      }
    });
  });
  return losses;
}

at::Tensor& gradients_on_cpus(at::Tensor& gradients, const at::Tensor& scores, const at::Tensor& target,
                              const at::Tensor& log_sums, const at::Tensor& factors, int64_t ignore_index) {
  const int64_t classes = scores.size(1);
  const auto* indices = target.const_data_ptr<int64_t>();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, scores.scalar_type(), "cross_entropy", [&] {
    const auto* from = scores.const_data_ptr<scalar_t>();
    auto* to = gradients.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, scores.size(0), 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float log_sum = log_sums.const_data_ptr<float>()[row],
                    factor = factors.const_data_ptr<float>()[row];
        for (int64_t c = 0, at = row * classes; c < classes; ++c, ++at)
          to[at] = indices[row] == ignore_index
                       ? scalar_t(0)
                       : static_cast<scalar_t>(cross_entropy_gradient(static_cast<float>(from[at]), log_sum,
                                                                      c == indices[row], factor));
      }
    });
  });
  return gradients;
}

const auto& losses_operator() {
  static const auto losses = device_operator("cross_entropy_",
                                             "(Tensor(a!) losses, Tensor(b!) log_sums, Tensor scores, Tensor "
                                             "target, int ignore_index) -> Tensor(a!)",
                                             losses_on_cpus);
  return losses;
}

const auto& loss_gradients_operator() {
  static const auto gradients = device_operator("cross_entropy_gradients_",
                                                "(Tensor(a!) gradients, Tensor scores, Tensor target, Tensor "
                                                "log_sums, Tensor factors, int ignore_index) "
                                                "-> Tensor(a!)",
                                                gradients_on_cpus);
  return gradients;
}

class CrossEntropy : public torch::autograd::Function<CrossEntropy> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& scores,
                            const at::Tensor& target, int64_t ignore_index) {
    at::Tensor losses = at::empty({scores.size(0)}, scores.options().dtype(at::kFloat));
    at::Tensor log_sums = at::empty_like(losses);
    losses_operator().call(losses, log_sums, scores, target, ignore_index);
    context->save_for_backward({scores, target, log_sums});
    context->saved_data["ignore_index"] = ignore_index;
    return losses;
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& factors) {
    const auto saved = context->get_saved_variables();
    at::Tensor gradients = at::empty_like(saved[0]);
    loss_gradients_operator().call(gradients, saved[0], saved[1], saved[2], factors[0].contiguous(),
                                   context->saved_data["ignore_index"].toInt());
    return {gradients, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

bool has_cross_entropy_of_rows(const at::Tensor& scores, const at::Tensor& target) {
  const at::ScalarType type = scores.scalar_type();
  if (scores.dim() != 2 || scores.size(1) < kFewestClasses || scores.numel() == 0 ||
      (type != at::kFloat && type != at::kHalf && type != at::kBFloat16))
    return false;
  // Kernels read as many indices as there are rows, unasked: others are left to libtorch, which has errors.
  return target.scalar_type() == at::kLong && target.dim() == 1 && target.size(0) == scores.size(0) &&
         target.device() == scores.device() && has_kernel_of(losses_operator(), scores);
}

at::Tensor cross_entropy_of_rows(const at::Tensor& scores, const at::Tensor& target, int64_t ignore_index) {
  return CrossEntropy::apply(scores.contiguous(), target.contiguous(), ignore_index);
}

}  // namespace tutti
