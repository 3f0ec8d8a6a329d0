#include "tensors/norms.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tensors/kernels/square_lanes.h"
#include "tensors/param_view.h"
#include "tensors/process_state.h"

namespace tutti {
namespace {

uint64_t bits_of(double value) { return std::bit_cast<uint64_t>(value); }

at::Tensor rows_of(const at::Tensor& tensor, int pieces, int index) {
  if (tensor.dim() == 0) return index == 0 ? tensor : tensor.flatten().slice(0, 0, 0);
  return narrowed(tensor, split(whole_region(tensor.sizes()), 0, {pieces, index}));
}

// Of widely different magnitudes.
std::vector<at::Tensor> tensors_of(at::ScalarType dtype) {
  at::manual_seed(5);
  std::vector<at::Tensor> tensors;
  for (const Shape& shape : std::vector<Shape>{
           {}, {1}, {33}, {4097}, {1003, 3}, {1003, 16}, {70, 27}, {3, 5000}, {16, 7, 3, 3}, {300, 300}})
    tensors.push_back((at::randn(shape) * at::exp(at::randn(shape) * 2)).to(dtype));
  tensors.push_back(at::randn({17, 8, 3, 3}).to(dtype).contiguous(at::MemoryFormat::ChannelsLast));
  tensors.push_back(at::randn({100, 40}).to(dtype).t());
  return tensors;
}

// The all-reduced bins of the pieces, added in the order given.
SumOverRanks sum_of_others(const std::vector<ExactSum>& others) {
  return [others](const at::Tensor& bins) {
    for (const ExactSum& other : others) {
      const at::Tensor theirs = at::zeros({ExactSum::kBins}, at::kDouble);
      other.store(theirs.mutable_data_ptr<double>());
      bins.add_(theirs);
    }
  };
}

TEST(Norms, DoNotDependOnTheCutNorOnTheOrder) {
  std::mt19937 generator(1);
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    for (const int threads : {1, 2}) {
      set_compute_threads(threads);
      for (const at::Tensor& tensor : tensors_of(dtype)) {
        const std::vector<at::Tensor> whole{tensor};
        const double norm = norms(whole, {})[0];
        EXPECT_EQ(bits_of(total_norm(whole, {})), bits_of(norm));
        for (const int pieces : {2, 3, 4, 8}) {
          std::vector<ExactSum> parts;
          for (int i = 0; i < pieces; ++i) parts.push_back(square_sum(rows_of(tensor, pieces, i)));
          std::ranges::shuffle(parts, generator);
          const std::vector<ExactSum> others(parts.begin() + 1, parts.end());
          const double summed = norms(std::span(parts).first(1), sum_of_others(others))[0];
          EXPECT_EQ(bits_of(summed), bits_of(norm)) << tensor.sizes() << dtype << pieces << " " << threads;
        }
      }
    }
  }
  set_compute_threads(1);
}

TEST(Norms, AreThoseOfFloat64) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const auto tensors = tensors_of(dtype);
    const auto found = norms(tensors, {});
    double squares = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const double expected = tensors[i].to(at::kDouble).square().sum().sqrt().item<double>();
      EXPECT_NEAR(found[i], expected, 1e-14 * expected) << tensors[i].sizes() << dtype;
      squares += expected * expected;
    }
    EXPECT_NEAR(total_norm(tensors, {}), std::sqrt(squares), 1e-14 * std::sqrt(squares));
  }
}

// Their squares have no float32.
TEST(Norms, HoldWhatFloat32DoesNot) {
  for (const double size : {1e-25, 1e25}) {
    const std::vector<at::Tensor> tensors{at::full({40, 40}, size), at::full({1600}, size)};
    for (const double norm : norms(tensors, {})) EXPECT_NEAR(norm, 40 * size, 1e-6 * 40 * size);
  }
}

TEST(Norms, OfRowsAreThoseOfTheCut) {
  for (const at::Tensor& tensor : tensors_of(at::kFloat)) {
    const at::Tensor whole = row_squares(tensor);
    const at::Tensor wide = tensor.to(at::kDouble).square();
    EXPECT_TRUE(at::allclose(whole, wide.reshape({whole.size(0), -1}).sum(1), 1e-14, 0)) << tensor.sizes();
    std::vector<at::Tensor> parts;
    for (int i = 0; i < 3; ++i) parts.push_back(row_squares(rows_of(tensor, 3, i)));
    EXPECT_TRUE(at::cat(parts).equal(whole)) << tensor.sizes();
  }
}

TEST(Norms, OfNothingAreZero) {
  EXPECT_EQ(square_sum({}).value(), 0.0);
  EXPECT_EQ(square_sum(at::empty({0, 5})).value(), 0.0);
  EXPECT_EQ(square_sum(at::empty({5, 0})).value(), 0.0);
  EXPECT_EQ(row_squares(at::empty({0, 5})).sizes(), at::IntArrayRef({0}));
  EXPECT_TRUE(row_squares(at::empty({5, 0})).equal(at::zeros({5}, at::kDouble)));
  EXPECT_EQ(total_norm({}, {}), 0.0);
}

TEST(Norms, KeepInfinitiesAndNan) {
  for (const Shape& shape : std::vector<Shape>{{3000}, {60, 50}}) {
    const at::Tensor tensor = at::ones(shape);
    tensor.view({-1})[1111] = -std::numeric_limits<float>::infinity();
    EXPECT_EQ(total_norm(std::vector{tensor}, {}), std::numeric_limits<double>::infinity());
    tensor.view({-1})[2222] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(total_norm(std::vector{tensor}, {})));
  }
}

// As a kernel of a device does, a thread for each lane.
TEST(Norms, OfARowAreTheSumOfItsLanes) {
  at::manual_seed(5);
  for (const int64_t columns : {16, 17, 31, 32, 33, 500}) {
    const at::Tensor row = at::randn({columns});
    std::array<double, kSquareLanes> lanes;
    for (int64_t l = 0; l < kSquareLanes; ++l)
      lanes[l] = square_lane(row.const_data_ptr<float>(), columns, l);
    for (int64_t half = kSquareLanes / 2; half > 0; half /= 2)
      for (int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    EXPECT_EQ(bits_of(lanes[0]), bits_of(row_squares(row.view({1, columns})).item<double>())) << columns;
  }
}

}  // namespace
}  // namespace tutti
