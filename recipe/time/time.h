#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "recipe/options.h"
#include "recipe/setting.h"

namespace tutti {

enum class TimeUnit { kIteration, kEpoch, kBatch, kSample, kToken, kDuration, kSecond };
const char* suffix(TimeUnit unit);  // "iter", "ep", "ba", "sp", "tok", "dur", "sec"

// A length of training in one unit: Composer's Time. A whole number, except in kDuration, a fraction of the
// whole training. Comparing or adding times of different units throws UserError.
class Time {
 public:
  Time() = default;                   // 0ep
  Time(double value, TimeUnit unit);  // throws UserError if the unit needs a whole number

  // "20ep", "0.5dur", "1e3tok", "1h20m40s". Numbers are written as in Python; hours, minutes and seconds are
  // optional, h < 24, m < 60, s < 60. Unlike in Composer, a number without a unit, NaN and infinity are
  // errors.
  static Time parse(std::string_view text);
  // Exactly as Composer's Time.from_timestring: "5" is 50 seconds, "" is 0 seconds, "infdur" is infinite.
  static Time parse_composer(std::string_view text);
  // A value of a recipe; an integer is in epochs. Errors name the key.
  static Time parse(const Setting& setting);

  double value() const { return value_; }
  int64_t count() const { return static_cast<int64_t>(value_); }
  TimeUnit unit() const { return unit_; }
  std::string text() const;  // "20ep", "0.5dur"

  Time operator-() const { return {-value_, unit_}; }
  Time operator+(const Time& other) const;
  Time operator-(const Time& other) const;
  // Whole units truncate toward zero. One factor of a product of times must be a kDuration; the quotient of
  // two times is a kDuration.
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

template <>
struct OptionType<Time> {
  static constexpr KeyType type = KeyType::kTime;
  static std::string text(const Time& time) { return time.text(); }
  static Time read(const Setting& key) { return Time::parse(key); }
};

}  // namespace tutti
