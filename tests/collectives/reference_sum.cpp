#include "tests/collectives/reference_sum.h"

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <map>
#include <tuple>

#include "runtime/random.h"

namespace tutti {

at::Tensor reference_sum(const std::vector<at::Tensor>& of_ranks) {
  if (of_ranks.size() == 1) return of_ranks.front().clone();
  std::size_t half = 1;
  while (half * 2 < of_ranks.size()) half *= 2;
  const std::vector<at::Tensor> left(of_ranks.begin(), of_ranks.begin() + half);
  const std::vector<at::Tensor> right(of_ranks.begin() + half, of_ranks.end());
  return at::add(reference_sum(left), reference_sum(right));
}

namespace {

at::Tensor draw_numbers(int64_t count, int rank, uint64_t salt) {
  const RandomKey draw = RandomKey(salt, "numbers").fold_in(rank);
  at::Tensor out = at::empty({count}, at::kDouble);
  double* values = out.mutable_data_ptr<double>();
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = draw.bits(i);
    const double spread = static_cast<double>(1 << (bits % 12));
    values[i] = (static_cast<double>(bits >> 11) * 0x1p-52 - 1) * spread;
  }
  return out;
}

}  // namespace

// Drawn once for all dtypes; those of other counts are forgotten.
at::Tensor numbers(at::ScalarType dtype, int64_t count, int rank, uint64_t salt) {
  thread_local std::map<std::tuple<int64_t, int, uint64_t>, at::Tensor> drawn;
  if (!drawn.empty() && std::get<0>(drawn.begin()->first) != count) drawn.clear();
  at::Tensor& own = drawn[{count, rank, salt}];
  if (!own.defined()) own = draw_numbers(count, rank, salt);
  return own.to(dtype, /*non_blocking=*/false, /*copy=*/true);
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  return a.numel() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

}  // namespace tutti
