#include "actors/messages/verdict.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr std::array kFields = {&Verdict::out_of_memory, &Verdict::non_finite, &Verdict::overflow,
                                &Verdict::stop,          &Verdict::samples,    &Verdict::tokens,
                                &Verdict::flops,         &Verdict::loss_sum,   &Verdict::loss_weight,
                                &Verdict::unused,        &Verdict::seconds};

}  // namespace

int64_t Verdict::numbers(int world, int64_t sums) { return std::ssize(kFields) + world + sums; }

at::Tensor Verdict::encode(int rank, int world) const {
  TUTTI_ASSERT(memory_peak.size() <= 1, "a decoded verdict is encoded again");
  at::Tensor vector = at::zeros({numbers(world, std::ssize(sums))}, at::kDouble);
  double* at = vector.data_ptr<double>();
  for (const auto field : kFields) *at++ = this->*field;
  if (!memory_peak.empty()) at[rank] = memory_peak[0];
  std::copy(sums.begin(), sums.end(), at + world);
  return vector;
}

Verdict Verdict::decode(const at::Tensor& sum, int world) {
  Verdict verdict;
  const double* at = sum.const_data_ptr<double>();
  for (const auto field : kFields) verdict.*field = *at++;
  verdict.memory_peak.assign(at, at + world);
  verdict.sums.assign(at + world, sum.const_data_ptr<double>() + sum.numel());
  return verdict;
}

}  // namespace tutti
