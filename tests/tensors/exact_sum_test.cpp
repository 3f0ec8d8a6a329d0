#include "tensors/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tensors/kernels/exact_digits.h"

namespace tutti {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

uint64_t bits_of_sum(double value) { return std::bit_cast<uint64_t>(value); }

// Of all magnitudes and both signs.
std::vector<double> any_numbers(std::size_t count, int lowest, int highest) {
  std::mt19937_64 generator(7);
  std::uniform_real_distribution<double> fraction(-1.0, 1.0);
  std::uniform_int_distribution<int> exponent(lowest, highest);
  std::vector<double> numbers(count);
  for (double& number : numbers) number = std::ldexp(fraction(generator), exponent(generator));
  return numbers;
}

double sum_of(const std::vector<double>& numbers) {
  ExactSum sum;
  for (const double number : numbers) sum.add(number);
  return sum.value();
}

TEST(ExactSum, LosesNothing) {
  EXPECT_EQ(ExactSum().value(), 0.0);
  EXPECT_EQ(sum_of({1e308, 1.0, -1e308}), 1.0);
  EXPECT_EQ(sum_of({5e-324, 1e300, 5e-324, -1e300}), 1e-323);
  EXPECT_EQ(sum_of({-1.0, std::ldexp(1.0, -200), -std::ldexp(1.0, 300)}), -std::ldexp(1.0, 300));
  EXPECT_EQ(sum_of({1e308, 1e308}), kInfinity);
  EXPECT_EQ(sum_of({1e308, 1e308, -1.5e308}), 5e307);
}

// As kernels of devices add them.
TEST(ExactSum, IsThatOfDigitsWhoseCarriesWait) {
  const std::vector<double> numbers = any_numbers(10'000, -400, 400);
  std::array<double, ExactSum::kBins> bins{};
  for (std::size_t begin = 0; begin < numbers.size(); begin += 2'500) {
    std::array<int64_t, ExactSum::kBins> digits{};
    for (std::size_t i = begin; i < begin + 2'500; ++i) {
      const ExactDigits own = exact_digits(std::bit_cast<uint64_t>(numbers[i]));
      digits[own.first] += own.low;
      digits[own.first + 1] += own.middle;
      digits[own.first + 2] += own.high;
    }
    add_to_bins(bins.data(), digits.data());
  }
  EXPECT_EQ(ExactSum(bins.data()).value(), sum_of(numbers));
}

// To the nearest, and to the even one of two that are as near.
TEST(ExactSum, RoundsOnce) {
  const double half = std::ldexp(1.0, -53), little = std::ldexp(1.0, -300);
  const double next = std::nextafter(1.0, 2.0);
  EXPECT_EQ(sum_of({1.0, half}), 1.0);
  EXPECT_EQ(sum_of({1.0, half, little}), next);
  EXPECT_EQ(sum_of({1.0, half, -little}), 1.0);
  EXPECT_EQ(sum_of({next, half}), std::nextafter(next, 2.0));
  EXPECT_EQ(sum_of({-1.0, -half, -little}), -next);
}

TEST(ExactSum, KeepsInfinitiesAndNan) {
  EXPECT_EQ(sum_of({1.0, kInfinity}), kInfinity);
  EXPECT_EQ(sum_of({-kInfinity, 3.0}), -kInfinity);
  EXPECT_TRUE(std::isnan(sum_of({-kInfinity, kInfinity})));
  EXPECT_TRUE(std::isnan(sum_of({1.0, std::nan("")})));
  double bins[ExactSum::kBins];
  ExactSum sum;
  sum.add(kInfinity);
  sum.store(bins);
  EXPECT_EQ(ExactSum(bins).value(), kInfinity);
}

// One by one, many at once, in any order, and over ranks.
TEST(ExactSum, HasTheSameBitsInAnyOrderAndGrouping) {
  for (const auto& [lowest, highest] : {std::pair(-1070, 1000), std::pair(-60, 0), std::pair(-300, 250)}) {
    std::vector<double> numbers = any_numbers(5000, lowest, highest);
    const uint64_t bits = bits_of_sum(sum_of(numbers));
    std::mt19937 generator(3);
    for (const std::size_t ranks : {1, 2, 3, 8}) {
      std::ranges::shuffle(numbers, generator);
      std::vector<double> bins(ExactSum::kBins);
      ExactSum grouped;
      const std::size_t each = (numbers.size() + ranks - 1) / ranks;
      for (std::size_t begin = 0; begin < numbers.size(); begin += each) {
        ExactSum part;
        part.add(std::span(numbers).subspan(begin, std::min(each, numbers.size() - begin)));
        grouped.add(part);
        std::vector<double> stored(ExactSum::kBins);
        part.store(stored.data());
        for (std::size_t b = 0; b < bins.size(); ++b) bins[b] += stored[b];
      }
      EXPECT_EQ(bits_of_sum(grouped.value()), bits) << lowest << " " << ranks;
      EXPECT_EQ(bits_of_sum(ExactSum(bins.data()).value()), bits) << lowest << " " << ranks;
    }
  }
}

// Large numbers that cancel leave small ones whole, many levels below.
TEST(ExactSum, LosesNothingOfMany) {
  const std::vector<double> small = any_numbers(300, -300, -250);
  std::vector<double> numbers = small;
  for (const double number : any_numbers(900, 200, 250)) numbers.insert(numbers.end(), {number, -number});
  std::ranges::shuffle(numbers, std::mt19937(4));
  ExactSum sum;
  sum.add(numbers);
  EXPECT_EQ(bits_of_sum(sum.value()), bits_of_sum(sum_of(small)));
}

TEST(ExactSum, AddsManyNumbersThatAreNotFinite) {
  for (const double special : {kInfinity, -kInfinity}) {
    std::vector<double> numbers = any_numbers(2000, -10, 10);
    numbers[1234] = special;
    ExactSum sum;
    sum.add(numbers);
    EXPECT_EQ(sum.value(), special);
  }
}

TEST(ExactSum, ManyEqualNumbersAreTheirProduct) {
  const std::vector<double> numbers(100'000, 0.1);
  ExactSum sum;
  sum.add(numbers);
  // 53 bits of a double, and 12 that 100,000 has but for trailing zeros: exact in the 64 of a long double.
  EXPECT_EQ(sum.value(), static_cast<double>(static_cast<long double>(0.1) * 100'000));
}

}  // namespace
}  // namespace tutti
