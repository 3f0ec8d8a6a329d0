// CUDA's kernels of tutti's operators (tensors/kernels/operator.h). They are registered when the library is
// loaded.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <type_traits>

#include "tensors/cuda/kernels.h"

namespace tutti {
namespace {

cudaStream_t stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

at::Tensor& row_squares_on_cuda(at::Tensor& sums, const at::Tensor& rows) {
  const c10::cuda::CUDAGuard guard(rows.device());
  auto* const to = sums.mutable_data_ptr<double>();
  const int64_t columns = rows.numel() / sums.numel();
  if (rows.scalar_type() == at::kDouble)
    sum_squares_of_rows(rows.const_data_ptr<double>(), sums.numel(), columns, to, stream());
  else
    sum_squares_of_rows(rows.const_data_ptr<float>(), sums.numel(), columns, to, stream());
  C10_CUDA_CHECK(cudaGetLastError());
  return sums;
}

at::Tensor& add_exactly_on_cuda(at::Tensor& bins, const at::Tensor& numbers) {
  const c10::cuda::CUDAGuard guard(numbers.device());
  const at::Tensor digits = at::zeros_like(bins, at::kLong);
  add_exactly(bins.mutable_data_ptr<double>(), digits.mutable_data_ptr<int64_t>(),
              numbers.const_data_ptr<double>(), numbers.numel(), stream());
  C10_CUDA_CHECK(cudaGetLastError());
  return bins;
}

at::Tensor& draw_bernoullis_on_cuda(at::Tensor& drawn, const std::optional<at::Tensor>& key,
                                    int64_t batch_state, int64_t first_place, int64_t below) {
  const c10::cuda::CUDAGuard guard(drawn.device());
  draw_bernoullis(drawn.mutable_data_ptr<bool>(), drawn.size(0), drawn.numel() / drawn.size(0),
                  key ? key->const_data_ptr<int64_t>() : nullptr, batch_state, first_place,
                  static_cast<uint64_t>(below), stream());
  C10_CUDA_CHECK(cudaGetLastError());
  return drawn;
}

at::Tensor& add_digest_sums_on_cuda(at::Tensor& sums, const at::Tensor& bytes, at::IntArrayRef begins,
                                    at::IntArrayRef ends) {
  const c10::cuda::CUDAGuard guard(bytes.device());
  add_digest_sums(reinterpret_cast<uint64_t*>(sums.mutable_data_ptr<int64_t>()),
                  static_cast<const uint8_t*>(bytes.const_data_ptr()), begins.data(), ends.data(),
                  static_cast<int64_t>(begins.size()), stream());
  C10_CUDA_CHECK(cudaGetLastError());
  return sums;
}

// Calls `of` with scores as CUDA's own type of numbers.
template <class Function>
void with_numbers(const at::Tensor& scores, const Function& of) {
  const void* const numbers = scores.const_data_ptr();
  if (scores.scalar_type() == at::kHalf)
    of(static_cast<const __half*>(numbers));
  else if (scores.scalar_type() == at::kBFloat16)
    of(static_cast<const __nv_bfloat16*>(numbers));
  else
    of(scores.const_data_ptr<float>());
}

at::Tensor& cross_entropies_on_cuda(at::Tensor& losses, at::Tensor& log_sums, const at::Tensor& scores,
                                    const at::Tensor& target, int64_t ignore_index) {
  const c10::cuda::CUDAGuard guard(scores.device());
  with_numbers(scores, [&](const auto* numbers) {
    sum_cross_entropies(losses.mutable_data_ptr<float>(), log_sums.mutable_data_ptr<float>(), numbers,
                        target.const_data_ptr<int64_t>(), scores.size(0), scores.size(1), ignore_index,
                        stream());
  });
  C10_CUDA_CHECK(cudaGetLastError());
  return losses;
}

at::Tensor& cross_entropy_gradients_on_cuda(at::Tensor& gradients, const at::Tensor& scores,
                                            const at::Tensor& target, const at::Tensor& log_sums,
                                            const at::Tensor& factors, int64_t ignore_index) {
  const c10::cuda::CUDAGuard guard(scores.device());
  with_numbers(scores, [&]<class Number>(const Number* numbers) {
    write_cross_entropy_gradients(static_cast<Number*>(gradients.mutable_data_ptr()), numbers,
                                  target.const_data_ptr<int64_t>(), log_sums.const_data_ptr<float>(),
                                  factors.const_data_ptr<float>(), scores.size(0), scores.size(1),
                                  ignore_index, stream());
  });
  C10_CUDA_CHECK(cudaGetLastError());
  return gradients;
}

// Kernels read and write four numbers at once.
at::Tensor aligned(const at::Tensor& tensor) {
  const auto bytes = static_cast<uintptr_t>(4 * tensor.element_size());
  return reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % bytes == 0 ? tensor : tensor.clone();
}

at::Tensor& layer_norm_on_cuda(at::Tensor& out, at::Tensor& means, at::Tensor& scales, const at::Tensor& x,
                               const at::Tensor& weight, const at::Tensor& bias, double eps) {
  const c10::cuda::CUDAGuard guard(x.device());
  const at::Tensor from = aligned(x);
  with_numbers(out, [&]<class Number>(const Number*) {
    if constexpr (!std::is_same_v<Number, float>)
      normalise_rows(static_cast<Number*>(out.mutable_data_ptr()), means.mutable_data_ptr<float>(),
                     scales.mutable_data_ptr<float>(), from.const_data_ptr<float>(),
                     weight.const_data_ptr<float>(), bias.const_data_ptr<float>(), x.size(0), x.size(1), eps,
                     stream());
  });
  C10_CUDA_CHECK(cudaGetLastError());
  return out;
}

constexpr int64_t kMostBlocks = 1024;  // about as many as a large GPU runs at once

at::Tensor& layer_norm_gradients_on_cuda(at::Tensor& dx, at::Tensor& column_gradients,
                                         const at::Tensor& gradients, const at::Tensor& x,
                                         const at::Tensor& means, const at::Tensor& scales,
                                         const at::Tensor& weight) {
  const c10::cuda::CUDAGuard guard(x.device());
  const int64_t blocks = std::min(kMostBlocks, x.size(0));
  const at::Tensor partial = at::empty({2, blocks, x.size(1)}, x.options());
  const at::Tensor from = aligned(x), given = aligned(gradients);
  with_numbers(given, [&](const auto* numbers) {
    if constexpr (!std::is_same_v<decltype(numbers), const float*>)
      write_norm_gradients(dx.mutable_data_ptr<float>(), partial.mutable_data_ptr<float>(), blocks, numbers,
                           from.const_data_ptr<float>(), means.const_data_ptr<float>(),
                           scales.const_data_ptr<float>(), weight.const_data_ptr<float>(), x.size(0),
                           x.size(1), stream());
  });
  C10_CUDA_CHECK(cudaGetLastError());
  at::sum_out(column_gradients, partial, 1);
  return dx;
}

}  // namespace
}  // namespace tutti

TORCH_LIBRARY_IMPL(tutti, CUDA, m) {
  m.impl("row_squares_", tutti::row_squares_on_cuda);
  m.impl("add_exactly_", tutti::add_exactly_on_cuda);
  m.impl("add_digest_sums_", tutti::add_digest_sums_on_cuda);
  m.impl("bernoullis_", tutti::draw_bernoullis_on_cuda);
  m.impl("layer_norm_", tutti::layer_norm_on_cuda);
  m.impl("layer_norm_gradients_", tutti::layer_norm_gradients_on_cuda);
  m.impl("cross_entropy_", tutti::cross_entropies_on_cuda);
  m.impl("cross_entropy_gradients_", tutti::cross_entropy_gradients_on_cuda);
}
