#include "training/time.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

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

[[noreturn]] void fail_unlike(const char* verb, const Time& a, const Time& b) {
  throw UserError(std::string("cannot ") + verb + " " + a.text() + " and " + b.text() + ": unlike units");
}

void require_like(const char* verb, const Time& a, const Time& b) {
  if (a.unit() != b.unit()) fail_unlike(verb, a, b);
}

Time truncated(double value, TimeUnit unit) {
  return {unit == TimeUnit::kDuration ? value : std::trunc(value), unit};
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// One part of "1h20m40s": takes "<digits><letter>" off the front. -1 when there is none.
int take_part(std::string_view& text, char letter) {
  size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  if (digits == 0 || digits > 2 || digits == text.size() || text[digits] != letter) return -1;
  int value = 0;
  std::from_chars(text.data(), text.data() + digits, value);
  text.remove_prefix(digits + 1);
  return value;
}

std::optional<Time> parse_clock(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const int hours = take_part(text, 'h');
  const int minutes = take_part(text, 'm');
  const int seconds = take_part(text, 's');
  if (!text.empty() || hours >= 24 || minutes >= 60 || seconds >= 60) return std::nullopt;
  return Time(3600 * std::max(hours, 0) + 60 * std::max(minutes, 0) + std::max(seconds, 0),
              TimeUnit::kSecond);
}

// As Python's float(): blanks around, a sign, and single underscores between digits.
std::optional<double> parse_number(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return std::nullopt;
  text = text.substr(first, text.find_last_not_of(" \t") + 1 - first);
  if (text.front() == '+') text = text.substr(text.size() > 1 && text[1] == '-' ? 0 : 1);
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between = i > 0 && i + 1 < text.size() && is_digit(text[i - 1]) && is_digit(text[i + 1]);
    if (text[i] != '_' || !between) digits += text[i];
  }
  double value = 0.0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<std::pair<std::string_view, TimeUnit>> split_unit(std::string_view text) {
  for (const auto& [name, unit] : kSuffixes) {
    const std::string_view wanted = name;
    if (text.size() <= wanted.size()) continue;
    const std::string_view tail = text.substr(text.size() - wanted.size());
    const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
    if (std::equal(tail.begin(), tail.end(), wanted.begin(), same))
      return std::pair{text.substr(0, text.size() - wanted.size()), unit};
  }
  return std::nullopt;
}

std::string shortest(double value) {
  std::array<char, 512> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed).ptr;
  return {text.data(), end};
}

}  // namespace

const char* suffix(TimeUnit unit) {
  for (const auto& [name, candidate] : kSuffixes)
    if (candidate == unit) return name;
  return "";
}

Time::Time(double value, TimeUnit unit) : value_(value), unit_(unit) {
  if (unit != TimeUnit::kDuration && value != std::trunc(value))
    throw UserError(shortest(value) + suffix(unit) + " is not a whole number of " + suffix(unit));
}

Time Time::parse(std::string_view text) {
  if (const auto clock = parse_clock(text)) return *clock;
  const auto split = split_unit(text);
  const auto number = split ? parse_number(split->first) : std::nullopt;
  if (!number) throw UserError(kExpected);
  return {*number, split->second};
}

Time Time::parse(const Setting& setting) {
  if (setting.is_integer()) return {static_cast<double>(setting.integer()), TimeUnit::kEpoch};
  if (!setting.is_text()) setting.fail(kExpected);
  try {
    return parse(setting.text());
  } catch (const UserError& error) {
    setting.fail(error.what());
  }
}

std::string Time::text() const {
  std::string number = shortest(value_);
  if (unit_ == TimeUnit::kDuration && number.find('.') == std::string::npos) number += ".0";
  return number + suffix(unit_);
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
  return {value_ - std::floor(value_ / other.value_) * other.value_, unit_};
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
