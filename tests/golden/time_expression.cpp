#include "tests/golden/time_expression.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>
#include <vector>

#include "runtime/error.h"
#include "training/time_text.h"

namespace tutti {
namespace {

using Arguments = std::vector<PythonValue>;

// "Time.from_epoch" and its like.
const std::map<std::string, TimeUnit> kFromUnit = {
    {"Time.from_iteration", TimeUnit::kIteration}, {"Time.from_epoch", TimeUnit::kEpoch},
    {"Time.from_batch", TimeUnit::kBatch},         {"Time.from_sample", TimeUnit::kSample},
    {"Time.from_token", TimeUnit::kToken},         {"Time.from_duration", TimeUnit::kDuration}};

Time from_input(const Arguments& in) {
  return in.size() > 1 ? time_from_input(in[0], unit_of(in[1])) : time_from_input(in.at(0));
}

// The wall clock only: "20h", not "20sec".
Time from_timedelta(const Arguments& in) {
  const auto seconds = composer_clock_seconds(std::get<std::string>(in.at(0)));
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

using Function = std::function<PythonValue(const Arguments&)>;

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> all = {
      {"Time", [](const Arguments& in) { return make_time(in.at(0), unit_of(in.at(1))); }},
      {"Time.from_input", from_input},
      {"Time.from_timestring", [](const Arguments& in) { return Time::parse_composer(str(in.at(0))); }},
      {"Time.from_timedelta", from_timedelta},
      {"TimeUnit", [](const Arguments& in) { return std::string(suffix(unit_of(in.at(0)))); }},
      {"int", to_int},
      {"float", to_float},
      {"str", [](const Arguments& in) { return str(in.at(0)); }},
      {"repr", [](const Arguments& in) { return repr(in.at(0)); }},
      {"hash",
       [](const Arguments& in) { return static_cast<int64_t>(std::hash<std::string>()(repr(in.at(0)))); }},
  };
  return all;
}

PythonValue call(const std::string& name, const Arguments& in) {
  const auto unit = kFromUnit.find(name);
  const auto found = functions().find(name);
  if (unit == kFromUnit.end() && found == functions().end())
    throw std::logic_error("no test knows the function " + name);
  try {
    return unit != kFromUnit.end() ? make_time(in.at(0), unit->second) : found->second(in);
  } catch (const std::out_of_range&) {
    throw UserError("an argument of " + name + " is missing");
  }
}

PythonValue call_method(const PythonValue& self, const std::string& name, const Arguments& in) {
  if (name == "to_timestring" && in.empty()) return str(self);
  if (name == "get" && std::holds_alternative<Timestamp>(self))
    return std::get<Timestamp>(self).get(unit_of(in.at(0)));
  throw std::logic_error("no test knows the method " + name);
}

PythonValue attribute_of(const PythonValue& self, const std::string& name) {
  if (const auto* time = std::get_if<Time>(&self)) {
    if (name == "value") return number_of(*time);
    if (name == "unit") return std::string(suffix(time->unit()));
  }
  if (const auto* now = std::get_if<Timestamp>(&self)) return now->get(unit_of(name));
  throw std::logic_error("no test knows the attribute " + name);
}

// Recursive descent over Python's grammar, as far as the golden expressions go.
class Parser {
 public:
  Parser(const std::string& text, const Timestamp& ts) : text_(text), ts_(ts) {}

  PythonValue whole() {
    PythonValue value = comparison();
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
    const auto goes_on = [&](char c) {
      const bool signed_exponent = end > at_ && (text_[end - 1] == 'e' || text_[end - 1] == 'E');
      return is_word(c) || (number && (c == '.' || ((c == '-' || c == '+') && signed_exponent)));
    };
    while (end < text_.size() && goes_on(text_[end])) ++end;
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

  PythonValue comparison() {
    PythonValue value = sum();
    for (const char* sign : {"==", "!=", "<=", ">=", "<", ">"})
      if (took(sign)) return compare(value, sign, sum());
    return value;
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
    return value;
  }

  PythonValue primary() {
    const std::string token = take();
    if (token.empty()) fail();
    if (token == "(") {
      PythonValue value = comparison();
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
    if (name == "ts") return ts_;
    const bool is_class = name == "Time" || name == "TimeUnit";
    if (is_class && took(".")) name += '.' + take();
    if (name.starts_with("TimeUnit.")) return name.substr(name.find('.') + 1);
    expect("(");
    return call(name, arguments());
  }

  Arguments arguments() {
    Arguments found;
    while (!took(")")) {
      found.push_back(comparison());
      if (!took(",") && peek() != ")") fail();
    }
    return found;
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
