#include "recipe/time/time.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "recipe/time/time_text.h"

namespace tutti {
namespace {

constexpr std::array<std::pair<const char*, TimeUnit>, 7> kSuffixes = {{{"iter", TimeUnit::kIteration},
                                                                        {"ep", TimeUnit::kEpoch},
                                                                        {"ba", TimeUnit::kBatch},
                                                                        {"sp", TimeUnit::kSample},
                                                                        {"tok", TimeUnit::kToken},
                                                                        {"dur", TimeUnit::kDuration},
                                                                        {"sec", TimeUnit::kSecond}}};

constexpr const char* kExpected = "expected a time such as \"20ep\", \"500ba\", \"0.5dur\" or \"1h20m40s\"";

// "20EP" is {"20", kEpoch}; nullopt if the text does not end in a unit, or has no number before the unit.
std::optional<std::pair<std::string_view, TimeUnit>> split_unit(std::string_view text) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  for (const auto& [suffix, unit] : kSuffixes) {
    const std::string_view ending = suffix;
    if (text.size() <= ending.size()) continue;
    const std::string_view tail = text.substr(text.size() - ending.size());
    if (std::equal(tail.begin(), tail.end(), ending.begin(), same))
      return std::pair{text.substr(0, text.size() - ending.size()), unit};
  }
  return std::nullopt;
}

[[noreturn]] void fail_unlike(const char* verb, const Time& a, const Time& b) {
  throw UserError(std::string("cannot ") + verb + " " + a.text() + " and " + b.text() + ": unlike units");
}

void require_like(const char* verb, const Time& a, const Time& b) {
  if (a.unit() != b.unit()) fail_unlike(verb, a, b);
}

Time truncated(double value, TimeUnit unit) {
  return {unit == TimeUnit::kDuration ? value : std::trunc(value), unit};
}

}  // namespace

const char* suffix(TimeUnit unit) {
  for (const auto& [name, candidate] : kSuffixes)
    if (candidate == unit) return name;
  return "";
}

Time::Time(double value, TimeUnit unit) : value_(value), unit_(unit) {
  if (unit == TimeUnit::kDuration) return;
  if (!std::isfinite(value) || value != std::trunc(value))
    throw UserError(python_repr(value) + suffix(unit) + " is not a whole number of " + suffix(unit));
  value_ += 0.0;  // there is no -0 among whole numbers
}

Time Time::parse(std::string_view text) {
  if (const auto seconds = clock_seconds(text)) return {static_cast<double>(*seconds), TimeUnit::kSecond};
  const auto split = split_unit(text);
  const auto number = split ? python_float(split->first) : std::nullopt;
  if (!number || !std::isfinite(*number)) throw UserError(kExpected);
  return {*number, split->second};
}

Time Time::parse_composer(std::string_view text) {
  if (const auto seconds = composer_clock_seconds(text))
    return {static_cast<double>(*seconds), TimeUnit::kSecond};
  if (text.ends_with('\n')) text.remove_suffix(1);
  const auto split = split_unit(text);
  const bool on_one_line = text.find('\n') == std::string_view::npos;
  const auto number = split && on_one_line ? python_float(ascii_number(split->first)) : std::nullopt;
  if (!number) throw UserError(kExpected);
  return {*number, split->second};
}

Time Time::parse(const Setting& setting) {
  if (setting.is_integer()) return {static_cast<double>(setting.integer()), TimeUnit::kEpoch};
  if (!setting.is_text()) setting.fail(kExpected);
  try {
    return parse(setting.text());
  } catch (const UserError& error) {
    setting.fail(error);
  }
}

std::string Time::text() const {
  return (unit_ == TimeUnit::kDuration ? python_repr(value_) : whole_text(value_)) + suffix(unit_);
}

Time Time::operator+(const Time& other) const {
  require_like("add", *this, other);
  return {value_ + other.value_, unit_};
}

Time Time::operator-(const Time& other) const {
  require_like("subtract", *this, other);
  return {value_ - other.value_, unit_};
}

Time Time::operator*(double factor) const { return truncated(value_ * factor, unit_); }

Time Time::operator*(const Time& other) const {
  if (unit_ == TimeUnit::kDuration) return other * value_;
  if (other.unit_ != TimeUnit::kDuration) fail_unlike("multiply", *this, other);
  return *this * other.value_;
}

Time Time::operator/(double divisor) const {
  if (divisor == 0.0) throw UserError("cannot divide " + text() + " by zero");
  return truncated(value_ / divisor, unit_);
}

Time Time::operator/(const Time& other) const {
  require_like("divide", *this, other);
  if (other.value_ == 0.0) throw UserError("cannot divide " + text() + " by zero");
  return {value_ / other.value_, TimeUnit::kDuration};
}

Time Time::operator%(const Time& other) const {
  require_like("divide", *this, other);
  if (other.value_ == 0.0) throw UserError("cannot divide " + text() + " by zero");
  const double rest = std::fmod(value_, other.value_);
  if (rest == 0.0) return {std::copysign(0.0, other.value_), unit_};
  return {(rest < 0.0) == (other.value_ < 0.0) ? rest : rest + other.value_, unit_};
}

bool Time::operator==(const Time& other) const {
  require_like("compare", *this, other);
  return value_ == other.value_;
}

std::partial_ordering Time::operator<=>(const Time& other) const {
  require_like("compare", *this, other);
  return value_ <=> other.value_;
}

}  // namespace tutti
