#include "tensors/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tensors/kernels/exact_digits.h"
#include "tensors/vectors.h"

namespace tutti {
namespace {

constexpr int64_t kMostAdditions = int64_t{1} << 30;  // of less than 2^32 to a digit of 63 bits
static_assert(ExactSum::kBins == kExactDigits + 1);
constexpr uint64_t kDigitMask = 0xFFFF'FFFF;
constexpr int64_t kBlock = 1024;
constexpr int64_t kLanes = 16;
constexpr int64_t kLeastVectors = 256;  // fewer numbers are added one by one

// Without the sign, the bits of numbers are in the order of the numbers.
TUTTI_VECTORS uint64_t largest_bits(const double* values) {
  uint64_t largest = 0;
  for (int64_t i = 0; i < kBlock; ++i)
    largest = std::max(largest, std::bit_cast<uint64_t>(values[i]) & 0x7FFF'FFFF'FFFF'FFFF);
  return largest;
}

// Sums the values rounded by `first`, then their remainders rounded by `second`, and leaves the last
// remainders in `values`. True if any of these is not 0.
TUTTI_VECTORS bool split(double* values, double first, double second, double* high, double* low) {
  uint64_t rests[kLanes] = {};
  double firsts[kLanes] = {}, seconds[kLanes] = {};
  for (int64_t i = 0; i < kBlock; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) {
      const double rounded = (values[i + l] + first) - first;
      const double rest = values[i + l] - rounded;
      const double next = (rest + second) - second;
      firsts[l] += rounded;
      seconds[l] += next;
      values[i + l] = rest - next;
      rests[l] |= std::bit_cast<uint64_t>(rest - next);
    }
  }
  std::copy_n(firsts, kLanes, high);
  std::copy_n(seconds, kLanes, low);
  return std::any_of(rests, rests + kLanes, [](uint64_t bits) { return bits << 1 != 0; });
}

}  // namespace

ExactSum::ExactSum(const double* bins) : special_(bins[kDigits]) {
  for (int d = 0; d < kDigits; ++d) digits_[d] = static_cast<int64_t>(bins[d]);
  carry();
}

void ExactSum::store(double* bins) const {
  ExactSum carried = *this;
  carried.carry();
  for (int d = 0; d < kDigits; ++d) bins[d] = static_cast<double>(carried.digits_[d]);
  bins[kDigits] = special_;
}

void ExactSum::add(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  if (power_of(bits) == kInfinitePower) {
    special_ += value;
    return;
  }
  const ExactDigits own = exact_digits(bits);
  int64_t* digits = &digits_[own.first];
  digits[0] += own.low;
  digits[1] += own.middle;
  digits[2] += own.high;
  if (++additions_ >= kMostAdditions) carry();
}

// A block has 2^6 numbers for each lane, none of them above 2^e, so that lanes and their sum stay below
// 2^(e + 10). Adding 1.5 * 2^(e + 11) and taking it away again rounds a number to a multiple of 2^(e - 41).
// Sums of those are exact, and so is what the rounding leaves: at most 2^(e - 42), the next 2^e.
void ExactSum::add_block(double* values) {
  uint64_t largest = largest_bits(values);
  while (largest != 0) {
    const int exponent = static_cast<int>(largest >> 52) - 1022;
    if (exponent > 1000 || exponent < -900) {
      for (int64_t i = 0; i < kBlock; ++i) add(values[i]);
      return;
    }
    double high[kLanes] = {}, low[kLanes] = {};
    const bool is_left =
        split(values, std::ldexp(1.5, exponent + 11), std::ldexp(1.5, exponent - 31), high, low);
    for (int64_t l = 0; l < kLanes; ++l) {
      add(high[l]);
      add(low[l]);
    }
    largest = is_left ? largest_bits(values) : 0;
  }
}

void ExactSum::add(std::span<const double> values) {
  std::array<double, kBlock> block;
  while (std::ssize(values) >= kLeastVectors) {
    const auto count = std::min<std::size_t>(values.size(), kBlock);
    const auto end = std::ranges::copy(values.first(count), block.begin()).out;
    std::fill(end, block.end(), 0.0);
    add_block(block.data());
    values = values.subspan(count);
  }
  for (const double value : values) add(value);
}

void ExactSum::add(const ExactSum& other) {
  ExactSum carried = other;
  carried.carry();
  for (int d = 0; d < kDigits; ++d) digits_[d] += carried.digits_[d];
  special_ += other.special_;
  if (++additions_ >= kMostAdditions) carry();
}

void ExactSum::carry() {
  for (int d = 0; d + 1 < kDigits; ++d) {
    digits_[d + 1] += digits_[d] >> 32;
    digits_[d] &= static_cast<int64_t>(kDigitMask);
  }
  additions_ = 0;
}

// 64 bits from the highest one on; the lowest of them says, too, whether lower ones are set, which is what
// the rounding to 53 bits needs.
double ExactSum::value() const {
  if (special_ != 0) return special_;
  ExactSum sum = *this;
  sum.carry();
  const bool is_negative = sum.digits_.back() < 0;
  if (is_negative) {
    for (int64_t& digit : sum.digits_) digit = -digit;
    sum.carry();
  }
  int top = kDigits - 1;
  while (top > 2 && sum.digits_[top] == 0) --top;
  const auto digit = [&](int d) { return static_cast<uint64_t>(sum.digits_[d]); };
  uint64_t bits = digit(top) << 32 | digit(top - 1), below = digit(top - 2);
  if (bits == 0) return std::ldexp(static_cast<double>(below), kLowest) * (is_negative ? -1 : 1);
  const int zeros = std::countl_zero(bits);
  below <<= 32;
  if (zeros > 0) bits = bits << zeros | below >> (64 - zeros);
  bool is_inexact = zeros < 64 && below << zeros != 0;
  for (int d = 0; d < top - 2; ++d) is_inexact |= sum.digits_[d] != 0;
  const double value =
      std::ldexp(static_cast<double>(bits | (is_inexact ? 1 : 0)), 32 * (top - 1) - zeros + kLowest);
  return is_negative ? -value : value;
}

}  // namespace tutti
