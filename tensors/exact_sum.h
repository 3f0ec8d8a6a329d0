#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace tutti {

// A sum of float64 numbers without rounding: the same bits in any order and grouping, so that ranks can add
// theirs. A fixed-point number in base 2^32 with digits for all of float64, whose carries wait (Kulisch's
// long accumulator; Neal 2015, "Fast exact summation using small and large superaccumulators",
// arXiv:1505.05571).
class ExactSum {
 public:
  // A sum as float64 numbers. Element by element, an all-reduce adds the sums of up to 2^20 ranks exactly.
  static constexpr int kBins = 68;

  ExactSum() = default;
  explicit ExactSum(const double* bins);
  void store(double* bins) const;

  // Infinities and NaN count as in a sum of float64 numbers.
  void add(double value);
  void add(const ExactSum& other);
  // Adds many; a function of the numbers alone, as all of this class.
  void add(std::span<const double> values);

  // The sum, rounded once to nearest.
  double value() const;

 private:
  static constexpr int kDigits = kBins - 1;  // the last one has the sign
  static constexpr int kLowest = -1074;      // exponent of the first digit

  void add_block(double* values);
  void carry();

  std::array<int64_t, kDigits> digits_{};
  int64_t additions_ = 0;  // since the last carry
  double special_ = 0;     // the sum of infinities and NaNs
};

}  // namespace tutti
