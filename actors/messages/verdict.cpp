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

constexpr std::array kGrainFields = {&Verdict::loss_sum, &Verdict::loss_weight, &Verdict::flops};

}  // namespace

int64_t Verdict::numbers(int world, int64_t sums, int64_t grains) {
  return std::ssize(kFields) + world + sums + grains * numbers_of_grain(sums);
}

int64_t Verdict::numbers_of_grain(int64_t sums) { return std::ssize(kGrainFields) + sums; }

at::Tensor Verdict::encode(int rank, int world) const {
  TUTTI_ASSERT(memory_peak.size() <= 1, "a decoded verdict is encoded again");
  at::Tensor vector = at::zeros({numbers(world, std::ssize(sums)) + std::ssize(grains)}, at::kDouble);
  double* at = vector.data_ptr<double>();
  for (const auto field : kFields) *at++ = this->*field;
  if (!memory_peak.empty()) at[rank] = memory_peak[0];
  at = std::copy(sums.begin(), sums.end(), at + world);
  std::copy(grains.begin(), grains.end(), at);
  return vector;
}

Verdict Verdict::decode(const at::Tensor& sum, int world, int64_t grains) {
  Verdict verdict;
  const double* at = sum.const_data_ptr<double>();
  for (const auto field : kFields) verdict.*field = *at++;
  verdict.memory_peak.assign(at, at + world);
  const int64_t rest = sum.numel() - std::ssize(kFields) - world;
  const int64_t sums = (rest - grains * std::ssize(kGrainFields)) / (grains + 1);
  at += world;
  verdict.sums.assign(at, at + sums);
  if (grains > 0) verdict.add_grains({at + sums, static_cast<std::size_t>(grains * numbers_of_grain(sums))});
  return verdict;
}

void Verdict::add_grains(std::span<const double> rows) {
  for (const auto field : kGrainFields) this->*field = 0;
  std::ranges::fill(sums, 0.0);
  const auto row_size = static_cast<std::size_t>(numbers_of_grain(std::ssize(sums)));
  for (; !rows.empty(); rows = rows.subspan(row_size)) {
    const double* at = rows.data();
    for (const auto field : kGrainFields) this->*field += *at++;
    for (double& total : sums) total += *at++;
  }
}

}  // namespace tutti
