#include "tensors/norms.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>

#include "tensors/kernels/operator.h"
#include "tensors/kernels/square_lanes.h"
#include "tensors/vectors.h"

namespace tutti {
namespace {

constexpr int64_t kShortRow = 16;  // numbers; shorter rows cost more than their numbers
constexpr int64_t kLanes = kSquareLanes;
constexpr int64_t kGrain = 1 << 15;  // numbers for a thread, as in ATen
constexpr int64_t kSums = 1024;      // added at once
constexpr int64_t kConverted = 1 << 20;

// As square_lane, for all lanes at once. A short last part is filled up with zeros.
TUTTI_VECTORS void sum_rows(const float* numbers, int64_t rows, int64_t columns, double* sums) {
  const int64_t whole = columns - columns % kLanes;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = numbers + r * columns;
    double lanes[kLanes] = {};
    float rest[kLanes] = {};
    std::copy(row + whole, row + columns, rest);
    for (int64_t i = 0; i < whole; i += kLanes)
      for (int64_t l = 0; l < kLanes; ++l) lanes[l] += static_cast<double>(row[i + l]) * row[i + l];
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] += static_cast<double>(rest[l]) * rest[l];
    for (int64_t half = kLanes / 2; half > 0; half /= 2)
      for (int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    sums[r] = lanes[0];
  }
}

void sum_rows(const double* numbers, int64_t rows, int64_t columns, double* sums) {
  for (int64_t r = 0; r < rows; ++r)
    sums[r] =
        std::inner_product(numbers + r * columns, numbers + (r + 1) * columns, numbers + r * columns, 0.0);
}

// The squares of numbers.
TUTTI_VECTORS void square(const float* numbers, int64_t count, double* squares) {
  for (int64_t i = 0; i < count; ++i) squares[i] = static_cast<double>(numbers[i]) * numbers[i];
}

void square(const double* numbers, int64_t count, double* squares) {
  for (int64_t i = 0; i < count; ++i) squares[i] = numbers[i] * numbers[i];
}

// Rows, each without gaps, one behind the other.
struct RowsInMemory {
  at::Tensor tensor;
  int64_t rows, columns;
};

RowsInMemory rows_in_memory(const at::Tensor& tensor) {
  const int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  const int64_t columns = rows == 0 ? 0 : tensor.numel() / rows;
  const bool is_dense = tensor.dim() == 0 || tensor.numel() == 0 ||
                        (tensor.is_non_overlapping_and_dense() && (rows == 1 || tensor.stride(0) == columns));
  return {is_dense ? tensor : tensor.contiguous(), rows, columns};
}

template <class Function>
void with_numbers(const at::Tensor& tensor, const Function& function) {
  if (tensor.scalar_type() == at::kDouble) return function(tensor.const_data_ptr<double>());
  function(tensor.const_data_ptr<float>());
}

// `add` gets rows [begin, end) in float32 or float64, 2^20 numbers at a time if they must be converted.
void for_rows(const RowsInMemory& all, const std::function<void(const at::Tensor&, int64_t begin)>& add) {
  const auto dtype = all.tensor.scalar_type();
  if (dtype == at::kFloat || dtype == at::kDouble) return add(all.tensor, 0);
  const int64_t each = std::max<int64_t>(1, kConverted / all.columns);
  const at::Tensor rows = all.tensor.dim() == 0 ? all.tensor.unsqueeze(0) : all.tensor;
  for (int64_t begin = 0; begin < all.rows; begin += each)
    add(rows.slice(0, begin, std::min(all.rows, begin + each)).to(at::kFloat), begin);
}

template <class Number>
ExactSum square_sum_of(const Number* numbers, int64_t rows, int64_t columns) {
  const bool by_number = columns < kShortRow;
  const int64_t parts = by_number ? rows * columns : rows, size = by_number ? 1 : columns;
  const auto add_parts = [&](int64_t begin, int64_t end, ExactSum sum) {
    std::array<double, kSums> sums;
    for (int64_t part = begin; part < end; part += kSums) {
      const int64_t count = std::min(kSums, end - part);
      if (by_number)
        square(numbers + part, count, sums.data());
      else
        sum_rows(numbers + part * size, count, size, sums.data());
      sum.add(std::span(sums.data(), count));
    }
    return sum;
  };
  const auto together = [](ExactSum sum, const ExactSum& other) {
    sum.add(other);
    return sum;
  };
  const int64_t grain = std::max<int64_t>(1, kGrain / size);
  return at::parallel_reduce(0, parts, grain, ExactSum(), add_parts, together);
}

// Of rows in float32 or float64, one behind the other.
at::Tensor& sum_rows_on_cpus(at::Tensor& sums, const at::Tensor& rows) {
  const int64_t columns = rows.numel() / sums.numel(), grain = std::max<int64_t>(1, kGrain / columns);
  double* const to = sums.mutable_data_ptr<double>();
  with_numbers(rows, [&](const auto* numbers) {
    at::parallel_for(0, sums.numel(), grain, [&](int64_t begin, int64_t end) {
      sum_rows(numbers + begin * columns, end - begin, columns, to + begin);
    });
  });
  return sums;
}

// To an ExactSum as float64 numbers.
at::Tensor& add_exactly_on_cpus(at::Tensor& bins, const at::Tensor& numbers) {
  ExactSum sum(bins.const_data_ptr<double>());
  sum.add({numbers.const_data_ptr<double>(), static_cast<std::size_t>(numbers.numel())});
  sum.store(bins.mutable_data_ptr<double>());
  return bins;
}

at::Tensor& sum_rows_where_they_are(at::Tensor& sums, const at::Tensor& rows) {
  if (rows.is_cpu()) return sum_rows_on_cpus(sums, rows);
  static const auto on_devices =
      device_operator("row_squares_", "(Tensor(a!) sums, Tensor rows) -> Tensor(a!)", sum_rows_on_cpus);
  return on_devices.call(sums, rows);
}

at::Tensor exact_bins_of(const at::Tensor& numbers) {
  static const auto add_on_devices =
      device_operator("add_exactly_", "(Tensor(a!) bins, Tensor numbers) -> Tensor(a!)", add_exactly_on_cpus);
  at::Tensor bins = at::zeros({ExactSum::kBins}, numbers.options());
  return add_on_devices.call(bins, numbers);
}

// Of a device's tensor, the float64 numbers whose exact sum is that of its squares.
at::Tensor parts_of_square_sum(const at::Tensor& tensor) {
  const RowsInMemory all = rows_in_memory(tensor);
  if (all.columns >= kShortRow) return row_squares(all.tensor);
  const at::Tensor wide = all.tensor.to(at::kDouble);
  return wide.mul(wide);
}

ExactSum square_sum_on_cpus(const at::Tensor& tensor) {
  ExactSum sum;
  const RowsInMemory all = rows_in_memory(tensor);
  for_rows(all, [&](const at::Tensor& part, int64_t) {
    with_numbers(part, [&](const auto* numbers) {
      sum.add(square_sum_of(numbers, part.numel() / all.columns, all.columns));
    });
  });
  return sum;
}

// Adds the squares of each tensor to the sum that `sum_of` its place gives. The host waits once.
void add_squares(std::span<const at::Tensor> tensors, const std::function<ExactSum&(std::size_t)>& sum_of) {
  std::vector<ExactSum*> sums;
  std::vector<std::vector<at::Tensor>> parts;  // of a device, for each of `sums`
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined() || tensors[i].numel() == 0) continue;
    ExactSum* const sum = &sum_of(i);
    if (tensors[i].is_cpu()) {
      sum->add(square_sum_on_cpus(tensors[i]));
      continue;
    }
    if (sums.empty() || sums.back() != sum) {
      sums.push_back(sum);
      parts.emplace_back();
    }
    parts.back().push_back(parts_of_square_sum(tensors[i]).flatten());
  }
  if (sums.empty()) return;
  std::vector<at::Tensor> bins;
  for (const auto& square_sums : parts) bins.push_back(exact_bins_of(at::cat(square_sums)));
  const at::Tensor on_host = at::stack(bins).cpu();
  const auto* row = on_host.const_data_ptr<double>();
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i]->add(ExactSum(row + i * ExactSum::kBins));
}

std::vector<ExactSum> square_sums(std::span<const at::Tensor> tensors) {
  std::vector<ExactSum> sums(tensors.size());
  add_squares(tensors, [&sums](std::size_t i) -> ExactSum& { return sums[i]; });
  return sums;
}

}  // namespace

at::Tensor row_squares(const at::Tensor& tensor) {
  const RowsInMemory all = rows_in_memory(tensor);
  const at::Tensor sums = at::zeros({all.rows}, tensor.options().dtype(at::kDouble));
  if (tensor.numel() == 0) return sums;
  for_rows(all, [&](const at::Tensor& part, int64_t first) {
    at::Tensor own = sums.narrow(0, first, part.numel() / all.columns);
    sum_rows_where_they_are(own, part);
  });
  return sums;
}

ExactSum square_sum(const at::Tensor& tensor) { return square_sums(std::span(&tensor, 1)).front(); }

std::vector<double> norms(std::span<const ExactSum> squares, const SumOverRanks& sum_over_ranks) {
  std::vector<double> norms;
  if (!sum_over_ranks) {
    for (const ExactSum& sum : squares) norms.push_back(std::sqrt(sum.value()));
    return norms;
  }
  const at::Tensor bins = at::zeros({std::ssize(squares), ExactSum::kBins}, at::kDouble);
  auto* rows = bins.mutable_data_ptr<double>();
  for (std::size_t i = 0; i < squares.size(); ++i) squares[i].store(rows + i * ExactSum::kBins);
  sum_over_ranks(bins.view({-1}));
  for (std::size_t i = 0; i < squares.size(); ++i)
    norms.push_back(std::sqrt(ExactSum(rows + i * ExactSum::kBins).value()));
  return norms;
}

std::vector<double> norms(std::span<const at::Tensor> tensors, const SumOverRanks& sum_over_ranks) {
  return norms(square_sums(tensors), sum_over_ranks);
}

double total_norm(std::span<const at::Tensor> tensors, const SumOverRanks& sum_over_ranks) {
  ExactSum squares;
  add_squares(tensors, [&squares](std::size_t) -> ExactSum& { return squares; });
  return norms(std::span(&squares, 1), sum_over_ranks).front();
}

}  // namespace tutti
