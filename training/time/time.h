#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "recipe/setting.h"

namespace tutti {

enum class TimeUnit { kIteration, kEpoch, kBatch, kSample, kToken, kDuration, kSecond };
const char* suffix(TimeUnit unit);  // "iter", "ep", "ba", "sp", "tok", "dur", "sec"

// A length of training in one unit: Composer's Time. Whole numbers, but for kDuration, which is a fraction of
// the whole training. Unlike units neither compare nor add: UserError, naming both.
class Time {
 public:
  Time() = default;                   // 0ep
  Time(double value, TimeUnit unit);  // throws UserError where the unit needs a whole number

  // "20ep", "0.5dur", "1e3tok", "1h20m40s". A number is written as in Python; the parts of hours, minutes and
  // seconds may be left out, h < 24, m < 60, s < 60. Other than in Composer a number without a unit is an
  // error, as is NaN or an infinity.
  static Time parse(std::string_view text);
  // Composer's Time.from_timestring, oddities and all: "5" is 50 seconds, "" none, "infdur" has no end.
  static Time parse_composer(std::string_view text);
  // A recipe's value: an integer is in epochs. Errors name its place.
  static Time parse(const Setting& setting);

  double value() const { return value_; }
  int64_t count() const { return static_cast<int64_t>(value_); }
  TimeUnit unit() const { return unit_; }
  std::string text() const;  // "20ep", "0.5dur"

  Time operator-() const { return {-value_, unit_}; }
  Time operator+(const Time& other) const;
  Time operator-(const Time& other) const;
  // Whole units truncate toward zero. A product needs a kDuration on one side; a quotient of two times is
  // one.
  Time operator*(double factor) const;
  Time operator*(const Time& other) const;
  Time operator/(double divisor) const;
  Time operator/(const Time& other) const;
  Time operator%(const Time& other) const;  // has the divisor's sign
  bool operator==(const Time& other) const;
  std::partial_ordering operator<=>(const Time& other) const;

 private:
  double value_ = 0.0;
  TimeUnit unit_ = TimeUnit::kEpoch;
};

}  // namespace tutti
