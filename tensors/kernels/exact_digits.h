#pragma once

#include <cstdint>

// The arithmetic of ExactSum (tensors/exact_sum.h), for kernels of all devices.

namespace tutti {

constexpr int kExactDigits = 67;  // in base 2^32; the last one has the sign

constexpr int kInfinitePower = 0x7ff;  // of infinities and NaN
constexpr int power_of(uint64_t bits) { return static_cast<int>(bits >> 52 & 0x7ff); }

// The summands of a finite float64, given by its bits, to digits `first` and the next two: less than 2^32
// each.
struct ExactDigits {
  int first;
  int64_t low, middle, high;
};
constexpr ExactDigits exact_digits(uint64_t bits) {
  const int power = power_of(bits);
  const uint64_t fraction = bits & 0xf'ffff'ffff'ffff;
  const uint64_t mantissa = power == 0 ? fraction : fraction | uint64_t{1} << 52;
  const int bit = power == 0 ? 0 : power - 1, shift = bit % 32;
  const int64_t sign = bits >> 63 != 0 ? -1 : 1;
  const uint64_t low = mantissa << shift, high = mantissa >> 1 >> (63 - shift);
  return {bit / 32, sign * static_cast<int64_t>(low & 0xffff'ffff), sign * static_cast<int64_t>(low >> 32),
          sign * static_cast<int64_t>(high)};
}

// Adds digits whose carries wait to the bins of a sum (ExactSum::store).
constexpr void add_to_bins(double* bins, const int64_t* digits) {
  int64_t carry = 0;
  for (int d = 0; d < kExactDigits; ++d) {
    const int64_t digit = static_cast<int64_t>(bins[d]) + digits[d] + carry;
    const bool is_last = d + 1 == kExactDigits;
    carry = is_last ? 0 : digit >> 32;
    bins[d] = static_cast<double>(is_last ? digit : digit & 0xffff'ffff);
  }
}

}  // namespace tutti
