#include "tests/golden/time_expression.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <iomanip>
#include <map>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "recipe/time/time_text.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using Arguments = std::vector<PythonValue>;  // None for one that is left out before another

// An argument, and its name where it has been given one.
struct GivenArgument {
  std::string name;
  PythonValue value;
};

const std::map<std::string, std::vector<std::string>> kArgumentNames = {
    {"Time", {"value", "unit"}},
    {"Time.from_input", {"i", "default_int_unit"}},
    {"Time.from_timestring", {"timestring"}},
    {"Time.from_timedelta", {"timestring"}},
    {"Time.from_iteration", {"iteration"}},
    {"Time.from_epoch", {"epoch"}},
    {"Time.from_batch", {"batch"}},
    {"Time.from_sample", {"sample"}},
    {"Time.from_token", {"token"}},
    {"Time.from_duration", {"duration"}},
    {"TimeUnit", {"value"}},
    {"get", {"unit"}}};

Arguments arranged(const std::string& function, const std::vector<GivenArgument>& given) {
  const auto known = kArgumentNames.find(function);
  const auto names = known == kArgumentNames.end() ? std::vector<std::string>() : known->second;
  Arguments in;
  for (const auto& [name, value] : given) {
    const auto named = static_cast<size_t>(std::ranges::find(names, name) - names.begin());
    if (!name.empty() && named == names.size())
      throw UserError(function + " does not take an argument " + name);
    const size_t at = name.empty() ? in.size() : named;
    in.resize(std::max(in.size(), at + 1));
    in[at] = value;
  }
  if (known != kArgumentNames.end() && in.size() > names.size())
    throw UserError("too many arguments for " + function);
  return in;
}

// "Time.from_epoch" and its like.
const std::map<std::string, TimeUnit> kFromUnit = {
    {"Time.from_iteration", TimeUnit::kIteration}, {"Time.from_epoch", TimeUnit::kEpoch},
    {"Time.from_batch", TimeUnit::kBatch},         {"Time.from_sample", TimeUnit::kSample},
    {"Time.from_token", TimeUnit::kToken},         {"Time.from_duration", TimeUnit::kDuration}};

Time from_input(const Arguments& in) {
  const bool has_unit = in.size() > 1 && !std::holds_alternative<std::monostate>(in[1]);
  return has_unit ? time_from_input(in[0], unit_of(in[1])) : time_from_input(in.at(0));
}

// The wall clock only: "20h", not "20sec".
Time from_timedelta(const Arguments& in) {
  const auto* text = std::get_if<std::string>(&in.at(0));
  const auto seconds = text ? composer_clock_seconds(*text) : std::nullopt;
  if (!seconds) throw UserError("no time of the wall clock: " + repr(in[0]));
  return {static_cast<double>(*seconds), TimeUnit::kSecond};
}

PythonValue to_int(const Arguments& in) {
  const PythonValue number =
      std::holds_alternative<Time>(in.at(0)) ? number_of(std::get<Time>(in[0])) : in[0];
  const auto* real = std::get_if<double>(&number);
  return real ? static_cast<int64_t>(make_time(std::trunc(*real), TimeUnit::kDuration).value()) : number;
}

PythonValue to_float(const Arguments& in) {
  if (std::holds_alternative<Time>(in.at(0))) return std::get<Time>(in[0]).value();
  return make_time(in[0], TimeUnit::kDuration).value();
}

PythonValue sum_of(const Arguments& in) {
  PythonValue sum = int64_t{0};
  for (const PythonValue& one : in) sum = add(sum, one);
  return sum;
}

PythonValue extreme(const Arguments& in, const std::string& comparison) {
  PythonValue found = in.at(0);
  for (const PythonValue& one : in)
    if (compare(one, comparison, found)) found = one;
  return found;
}

using Function = std::function<PythonValue(const Arguments&)>;

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> all = {
      {"Time", [](const Arguments& in) { return make_time(in.at(0), unit_of(in.at(1))); }},
      {"Time.from_input", from_input},
      {"Time.from_timestring", [](const Arguments& in) { return Time::parse_composer(str(in.at(0))); }},
      {"Time.from_timedelta", from_timedelta},
      {"TimeUnit", [](const Arguments& in) { return unit_of(in.at(0)); }},
      {"abs", [](const Arguments& in) { return absolute(in.at(0)); }},
      {"round", [](const Arguments& in) { return rounded(in.at(0)); }},
      {"bool", [](const Arguments& in) { return truth(in.at(0)); }},
      {"max", [](const Arguments& in) { return extreme(in, ">"); }},
      {"min", [](const Arguments& in) { return extreme(in, "<"); }},
      {"sum", sum_of},
      {"int", to_int},
      {"float", to_float},
      {"str", [](const Arguments& in) { return str(in.at(0)); }},
      {"repr", [](const Arguments& in) { return repr(in.at(0)); }},
      {"hash",
       [](const Arguments& in) { return static_cast<int64_t>(std::hash<std::string>()(repr(in.at(0)))); }},
  };
  return all;
}

PythonValue call(const std::string& name, const std::vector<GivenArgument>& given) {
  const auto unit = kFromUnit.find(name);
  const auto found = functions().find(name);
  if (unit == kFromUnit.end() && found == functions().end())
    throw std::logic_error("no test knows the function " + name);
  const Arguments in = arranged(name, given);
  try {
    return unit != kFromUnit.end() ? make_time(in.at(0), unit->second) : found->second(in);
  } catch (const std::out_of_range&) {
    throw UserError("an argument of " + name + " is missing");
  }
}

PythonValue call_method(const PythonValue& self, const std::string& name,
                        const std::vector<GivenArgument>& given) {
  const Arguments in = arranged(name, given);
  if (name == "to_timestring" && in.empty()) return str(self);
  if (name == "copy" && in.empty() && std::holds_alternative<Timestamp>(self)) return self;
  if (name == "get" && in.size() == 1 && std::holds_alternative<Timestamp>(self))
    return std::get<Timestamp>(self).get(unit_of(in[0]));
  throw std::logic_error("no test knows the method " + name);
}

// As Python prints a timedelta: "1 day, 0:01:02.500000".
std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds * 1e6));
  const int64_t micros = whole % 1'000'000, days = whole / 1'000'000 / 86400,
                rest = whole / 1'000'000 % 86400;
  std::ostringstream text;
  if (days != 0) text << days << (days == 1 ? " day, " : " days, ");
  const auto two = [&](int64_t number) { text << ':' << std::setw(2) << std::setfill('0') << number; };
  text << rest / 3600;
  two(rest / 60 % 60);
  two(rest % 60);
  if (micros != 0) text << '.' << std::setw(6) << std::setfill('0') << micros;
  return text.str();
}

PythonValue attribute_of_moment(const Timestamp& now, const std::string& name) {
  struct Part {
    int64_t Timestamp::*count;
    TimeUnit unit;
  };
  static const std::map<std::string, Part> parts = {
      {"epoch_in_iteration", {&Timestamp::epoch_in_iteration, TimeUnit::kEpoch}},
      {"token_in_iteration", {&Timestamp::token_in_iteration, TimeUnit::kToken}},
      {"batch_in_epoch", {&Timestamp::batch_in_epoch, TimeUnit::kBatch}},
      {"sample_in_epoch", {&Timestamp::sample_in_epoch, TimeUnit::kSample}},
      {"token_in_epoch", {&Timestamp::token_in_epoch, TimeUnit::kToken}}};
  static const std::map<std::string, double Timestamp::*> clocks = {
      {"total_wct", &Timestamp::total_wct},
      {"iteration_wct", &Timestamp::iteration_wct},
      {"epoch_wct", &Timestamp::epoch_wct},
      {"batch_wct", &Timestamp::batch_wct}};
  if (const auto part = parts.find(name); part != parts.end())
    return Time(static_cast<double>(now.*part->second.count), part->second.unit);
  if (const auto clock = clocks.find(name); clock != clocks.end()) return clock_text(now.*clock->second);
  return now.get(unit_of(name));
}

PythonValue attribute_of(const PythonValue& self, const std::string& name) {
  if (const auto* time = std::get_if<Time>(&self)) {
    if (name == "value") return number_of(*time);
    if (name == "unit") return time->unit();
  }
  if (const auto* unit = std::get_if<TimeUnit>(&self)) {
    if (name == "value") return std::string(suffix(*unit));
    if (name == "name") return std::string(name_of(*unit));
  }
  if (const auto* now = std::get_if<Timestamp>(&self)) return attribute_of_moment(*now, name);
  throw std::logic_error("no test knows the attribute " + name);
}

// Recursive descent over Python's grammar, as far as the golden expressions go.
class Parser {
 public:
  Parser(const std::string& text, const Timestamp& ts) : text_(text), ts_(ts) {}

  PythonValue whole() {
    PythonValue value = condition();
    if (!peek().empty()) fail();
    return value;
  }

 private:
  [[noreturn]] void fail() const {
    throw std::logic_error("no test knows this form: " + text_ + " at " + std::to_string(at_));
  }

  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

  // The next token: a word, a number, a quote, one or two characters of an operator. "" at the end.
  std::string peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ == text_.size()) return "";
    if (is_word(text_[at_]) || text_[at_] == '.') return word();
    const std::string two = text_.substr(at_, 2);
    for (const char* known : {"==", "!=", "<=", ">=", "//", "**"})
      if (two == known) return two;
    return text_.substr(at_, 1);
  }

  std::string word() const {
    const bool number = std::isdigit(static_cast<unsigned char>(text_[at_])) || is_fraction();
    size_t end = at_;
    const auto resumes = [&](char c) {
      const bool signed_exponent = end > at_ && (text_[end - 1] == 'e' || text_[end - 1] == 'E');
      return is_word(c) || (number && (c == '.' || ((c == '-' || c == '+') && signed_exponent)));
    };
    while (end < text_.size() && resumes(text_[end])) ++end;
    return text_.substr(at_, std::max(end, at_ + 1) - at_);
  }

  bool is_fraction() const {
    return text_[at_] == '.' && at_ + 1 < text_.size() &&
           std::isdigit(static_cast<unsigned char>(text_[at_ + 1]));
  }

  std::string take() {
    const std::string token = peek();
    at_ += token.size();
    return token;
  }

  bool took(const std::string& token) {
    if (peek() != token) return false;
    at_ += token.size();
    return true;
  }

  void expect(const std::string& token) {
    if (!took(token)) fail();
  }

  PythonValue condition() {
    if (took("not")) return !truth(condition());
    return comparison();
  }

  std::string taken_sign() {
    for (const char* sign : {"==", "!=", "<=", ">=", "<", ">"})
      if (took(sign)) return sign;
    return "";
  }

  // a < b < c is a < b and b < c.
  PythonValue comparison() {
    PythonValue left = sum();
    std::string sign = taken_sign();
    if (sign.empty()) return left;
    bool holds = true;
    for (; !sign.empty(); sign = taken_sign()) {
      const PythonValue right = sum();
      holds = holds && compare(left, sign, right);
      left = right;
    }
    return holds;
  }

  PythonValue sum() {
    PythonValue value = product();
    while (true) {
      if (took("+"))
        value = add(value, product());
      else if (took("-"))
        value = subtract(value, product());
      else
        return value;
    }
  }

  PythonValue product() {
    PythonValue value = signed_value();
    while (true) {
      if (took("*"))
        value = multiply(value, signed_value());
      else if (took("/"))
        value = divide(value, signed_value());
      else if (took("//"))
        value = floor_divide(value, signed_value());
      else if (took("%"))
        value = modulo(value, signed_value());
      else
        return value;
    }
  }

  PythonValue signed_value() {
    if (took("-")) return negate(signed_value());
    if (took("+")) return signed_value();
    PythonValue value = primary();
    while (took(".")) {
      const std::string name = take();
      value = took("(") ? call_method(value, name, arguments()) : attribute_of(value, name);
    }
    if (took("**")) return power(value, signed_value());
    return value;
  }

  PythonValue primary() {
    const std::string token = take();
    if (token.empty()) fail();
    if (token == "(") {
      PythonValue value = condition();
      expect(")");
      return value;
    }
    if (token == "\"" || token == "'") return quoted(token[0]);
    if (std::isdigit(static_cast<unsigned char>(token[0])) || token[0] == '.') return number(token);
    return named(token);
  }

  PythonValue quoted(char quote) {
    const size_t end = text_.find(quote, at_);
    if (end == std::string::npos) fail();
    const std::string inside = text_.substr(at_, end - at_);
    at_ = end + 1;
    return inside;
  }

  PythonValue number(const std::string& token) const {
    const auto value = python_float(token);
    if (!value) fail();
    if (token.find_first_of(".eE") == std::string::npos) return static_cast<int64_t>(*value);
    return *value;
  }

  PythonValue named(std::string name) {
    if (name == "True" || name == "False") return name == "True";
    if (name == "None") return std::monostate();
    if (name == "ts") return ts_;
    const bool is_class = name == "Time" || name == "TimeUnit";
    if (is_class && took(".")) name += '.' + take();
    if (name.starts_with("TimeUnit.")) return unit_named(name.substr(name.find('.') + 1));
    expect("(");
    return call(name, arguments());
  }

  static PythonValue unit_named(const std::string& name) {
    const TimeUnit unit = unit_of(name);
    if (name != name_of(unit)) throw UserError("TimeUnit has no " + name);
    return unit;
  }

  // A list stands for its items: it is only ever the one argument of sum, max or min.
  std::vector<GivenArgument> arguments(const char* end = ")") {
    std::vector<GivenArgument> found;
    while (!took(end)) {
      const std::string name = argument_name();
      if (name.empty() && took("["))
        for (GivenArgument& item : arguments("]")) found.push_back(std::move(item));
      else
        found.push_back({name, condition()});
      if (!took(",") && peek() != end) fail();
    }
    return found;
  }

  // "unit" of "unit=...", and nothing of any other argument.
  std::string argument_name() {
    const size_t begin = at_;
    std::string name = take();
    if (!name.empty() && is_word(name[0]) && took("=")) return name;
    at_ = begin;
    return "";
  }

  const std::string& text_;
  const Timestamp& ts_;
  size_t at_ = 0;
};

}  // namespace

PythonValue evaluate(const std::string& expression, const Timestamp& ts) {
  return Parser(expression, ts).whole();
}

}  // namespace tutti
