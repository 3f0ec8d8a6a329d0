#include "tests/golden/python_value.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "recipe/time/time_text.h"
#include "runtime/error.h"

namespace tutti {
namespace {

[[noreturn]] void raise(const std::string& what) { throw UserError(what); }

template <class T>
bool is(const PythonValue& value) {
  return std::holds_alternative<T>(value);
}

bool is_whole(const PythonValue& value) { return is<bool>(value) || is<int64_t>(value); }

bool is_number(const PythonValue& value) { return is_whole(value) || is<double>(value); }

double number(const PythonValue& value) {
  if (is<bool>(value)) return std::get<bool>(value) ? 1.0 : 0.0;
  if (is<int64_t>(value)) return static_cast<double>(std::get<int64_t>(value));
  if (is<double>(value)) return std::get<double>(value);
  raise("not a number: " + repr(value));
}

// The result of arithmetic on numbers: whole where both are.
PythonValue result(double value, const PythonValue& a, const PythonValue& b) {
  if (is_whole(a) && is_whole(b)) return static_cast<int64_t>(value);
  return value;
}

// The side that is a Time, and the other one, for what is the same both ways round.
std::optional<std::pair<Time, PythonValue>> time_first(const PythonValue& a, const PythonValue& b) {
  if (is<Time>(a)) return std::pair(std::get<Time>(a), b);
  if (is<Time>(b)) return std::pair(std::get<Time>(b), a);
  return std::nullopt;
}

bool holds(std::partial_ordering order, const std::string& comparison) {
  if (comparison == "<") return order < 0;
  if (comparison == "<=") return order <= 0;
  if (comparison == ">") return order > 0;
  if (comparison == ">=") return order >= 0;
  if (comparison == "==") return order == 0;
  if (comparison == "!=") return order != 0;
  throw std::logic_error("no test knows the comparison " + comparison);
}

std::string mirrored(const std::string& comparison) {
  if (comparison.starts_with('<')) return '>' + comparison.substr(1);
  if (comparison.starts_with('>')) return '<' + comparison.substr(1);
  return comparison;
}

bool is_equality(const std::string& comparison) { return comparison == "==" || comparison == "!="; }

// Values that cannot be compared are unequal, and have no order.
bool unlike(const PythonValue& a, const std::string& comparison, const PythonValue& b) {
  if (is_equality(comparison)) return comparison == "!=";
  raise(repr(a) + " has no order with " + repr(b));
}

bool compare_moment(const Timestamp& now, const std::string& comparison, const PythonValue& other) {
  if (is<Timestamp>(other) && is_equality(comparison))
    return (now == std::get<Timestamp>(other)) == (comparison == "==");
  if (!is<Time>(other) && !is<std::string>(other)) return unlike(now, comparison, other);
  const Time time = time_from_input(other);
  return holds(now.get(time.unit()) <=> time, comparison);
}

// Composer asserts that one of two times is the larger one where they are not the same.
bool compare_times(const Time& time, const std::string& comparison, const PythonValue& other) {
  if (!is_number(other) && !is<std::string>(other) && !is<Time>(other))
    return unlike(time, comparison, other);
  const std::partial_ordering order = time <=> time_from_input(other, time.unit());
  if (order == std::partial_ordering::unordered) raise("NaN has no order");
  return holds(order, comparison);
}

bool same_but_for_case(const std::string& a, const std::string& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// A unit is also its value and its name, in any case.
bool compare_units(TimeUnit unit, const std::string& comparison, const PythonValue& other) {
  if (!is<std::string>(other) && !is<TimeUnit>(other)) return unlike(unit, comparison, other);
  const std::string text = is<TimeUnit>(other) ? suffix(std::get<TimeUnit>(other)) : str(other);
  const bool is_same = same_but_for_case(text, suffix(unit)) || same_but_for_case(text, name_of(unit));
  return is_same && is_equality(comparison) ? comparison == "==" : unlike(unit, comparison, other);
}

}  // namespace

const char* name_of(TimeUnit unit) {
  switch (unit) {
    case TimeUnit::kIteration:
      return "ITERATION";
    case TimeUnit::kEpoch:
      return "EPOCH";
    case TimeUnit::kBatch:
      return "BATCH";
    case TimeUnit::kSample:
      return "SAMPLE";
    case TimeUnit::kToken:
      return "TOKEN";
    case TimeUnit::kDuration:
      return "DURATION";
    case TimeUnit::kSecond:
      return "SECOND";
  }
  return "";
}

TimeUnit unit_of(const PythonValue& value) {
  if (is<TimeUnit>(value)) return std::get<TimeUnit>(value);
  if (!is<std::string>(value)) raise("not a unit: " + repr(value));
  const std::string& text = std::get<std::string>(value);
  for (const TimeUnit unit : {TimeUnit::kIteration, TimeUnit::kEpoch, TimeUnit::kBatch, TimeUnit::kSample,
                              TimeUnit::kToken, TimeUnit::kDuration, TimeUnit::kSecond})
    if (same_but_for_case(text, suffix(unit)) || same_but_for_case(text, name_of(unit))) return unit;
  raise("there is no unit " + text);
}

Time make_time(const PythonValue& value, TimeUnit unit) {
  if (unit != TimeUnit::kDuration && !is_whole(value)) raise("not an int: " + repr(value));
  if (!is<std::string>(value)) return {number(value), unit};
  const auto read = python_float(ascii_number(std::get<std::string>(value)));
  if (!read) raise("not a number: " + repr(value));
  return {*read, unit};
}

Time time_from_input(const PythonValue& value, TimeUnit unit) {
  return is_number(value) ? make_time(value, unit) : time_from_input(value);
}

Time time_from_input(const PythonValue& value) {
  if (is<Time>(value)) return std::get<Time>(value);
  if (is<std::string>(value)) return Time::parse_composer(std::get<std::string>(value));
  raise("not a time: " + repr(value));
}

PythonValue number_of(const Time& time) {
  if (time.unit() == TimeUnit::kDuration) return time.value();
  return time.count();
}

PythonValue add(const PythonValue& a, const PythonValue& b) {
  if (const auto sides = time_first(a, b))
    return sides->first + time_from_input(sides->second, sides->first.unit());
  return result(number(a) + number(b), a, b);
}

PythonValue subtract(const PythonValue& a, const PythonValue& b) {
  if (is<Time>(a)) return std::get<Time>(a) - time_from_input(b, std::get<Time>(a).unit());
  if (is<Time>(b)) return add(negate(b), a);
  return result(number(a) - number(b), a, b);
}

PythonValue multiply(const PythonValue& a, const PythonValue& b) {
  const auto sides = time_first(a, b);
  if (!sides) return result(number(a) * number(b), a, b);
  const auto& [time, factor] = *sides;
  return is_number(factor) ? time * number(factor) : time * time_from_input(factor);
}

PythonValue divide(const PythonValue& a, const PythonValue& b) {
  if (is<Time>(a))
    return is_number(b) ? std::get<Time>(a) / number(b) : std::get<Time>(a) / time_from_input(b);
  if (number(b) == 0.0) raise("division by zero");
  return number(a) / number(b);
}

PythonValue modulo(const PythonValue& a, const PythonValue& b) {
  if (is<Time>(a)) return std::get<Time>(a) % time_from_input(b, std::get<Time>(a).unit());
  const Time rest = Time(number(a), TimeUnit::kDuration) % Time(number(b), TimeUnit::kDuration);
  return result(rest.value(), a, b);
}

PythonValue floor_divide(const PythonValue& a, const PythonValue& b) {
  if (number(b) == 0.0) raise("division by zero");
  return result(std::floor(number(a) / number(b)), a, b);
}

PythonValue power(const PythonValue& a, const PythonValue& b) {
  const double value = std::pow(number(a), number(b));
  if (number(b) < 0.0) return value;
  return result(value, a, b);
}

PythonValue absolute(const PythonValue& a) { return result(std::abs(number(a)), a, a); }

PythonValue rounded(const PythonValue& a) { return static_cast<int64_t>(std::nearbyint(number(a))); }

bool truth(const PythonValue& a) {
  if (is<std::string>(a)) return !std::get<std::string>(a).empty();
  return is_number(a) ? number(a) != 0.0 : !is<std::monostate>(a);
}

PythonValue negate(const PythonValue& a) {
  if (is<Time>(a)) return -std::get<Time>(a);
  return result(-number(a), a, a);
}

bool compare(const PythonValue& a, const std::string& comparison, const PythonValue& b) {
  if (is<Timestamp>(a)) return compare_moment(std::get<Timestamp>(a), comparison, b);
  if (is<Timestamp>(b)) {
    if (is<Time>(a)) return unlike(a, comparison, b);  // a Time does not leave it to the other side
    return compare_moment(std::get<Timestamp>(b), mirrored(comparison), a);
  }
  if (is<Time>(a)) return compare_times(std::get<Time>(a), comparison, b);
  if (is<Time>(b)) return compare(b, mirrored(comparison), a);
  if (is<TimeUnit>(a)) return compare_units(std::get<TimeUnit>(a), comparison, b);
  if (is<TimeUnit>(b)) return compare(b, mirrored(comparison), a);
  if (is<std::string>(a) && is<std::string>(b))
    return holds(std::get<std::string>(a) <=> std::get<std::string>(b), comparison);
  if (is<std::monostate>(a) && is<std::monostate>(b) && is_equality(comparison)) return comparison == "==";
  if (!is_number(a) || !is_number(b)) return unlike(a, comparison, b);
  return holds(number(a) <=> number(b), comparison);
}

std::string repr(const PythonValue& value) {
  if (is<std::monostate>(value)) return "None";
  if (is<TimeUnit>(value)) return '<' + str(value) + ": '" + suffix(std::get<TimeUnit>(value)) + "'>";
  if (is<bool>(value)) return std::get<bool>(value) ? "True" : "False";
  if (is<int64_t>(value)) return std::to_string(std::get<int64_t>(value));
  if (is<double>(value)) return python_repr(std::get<double>(value));
  if (is<std::string>(value)) return '\'' + std::get<std::string>(value) + '\'';
  if (is<Timestamp>(value)) return "Timestamp(...)";
  const Time& time = std::get<Time>(value);
  const std::string text = time.text();
  return "Time(" + text.substr(0, text.size() - std::string(suffix(time.unit())).size()) + ", TimeUnit." +
         name_of(time.unit()) + ")";
}

std::string str(const PythonValue& value) {
  if (is<std::string>(value)) return std::get<std::string>(value);
  if (is<TimeUnit>(value)) return std::string("TimeUnit.") + name_of(std::get<TimeUnit>(value));
  return is<Time>(value) ? std::get<Time>(value).text() : repr(value);
}

}  // namespace tutti
