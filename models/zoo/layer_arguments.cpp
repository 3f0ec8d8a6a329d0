#include "models/zoo/layer_arguments.h"

#include <algorithm>
#include <charconv>

#include "recipe/catalog.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int64_t kWidestLayer = 1'000'000'000;

bool is_integer(const std::string& text, int64_t& number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && rest == text.data() + text.size();
}

}  // namespace

std::string without_blanks_around(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

std::vector<std::string> split_arguments(const std::string& list) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : list) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth < 0) throw UserError("an extra ')'");
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (depth > 0) throw UserError("a ')' is missing");
  for (std::string& part : parts) part = without_blanks_around(part);
  if (parts.back().empty()) parts.pop_back();  // Python allows a comma at the end
  return parts;
}

LayerArguments::LayerArguments(const std::string& list, std::vector<std::string> names)
    : names_(std::move(names)) {
  std::size_t position = 0;
  for (const std::string& part : split_arguments(list)) {
    const auto equals = part.find('=');
    if (equals == std::string::npos && given_.size() > position)
      throw UserError("argument " + part + " has no name but follows a named argument");
    if (equals == std::string::npos && position == names_.size())
      throw UserError("more than " + std::to_string(names_.size()) + " arguments");
    const std::string name =
        equals == std::string::npos ? names_[position++] : without_blanks_around(part.substr(0, equals));
    if (std::find(names_.begin(), names_.end(), name) == names_.end())
      throw UserError("there is no argument " + name + "; expected one of " + joined(names_));
    const std::string value =
        equals == std::string::npos ? part : without_blanks_around(part.substr(equals + 1));
    if (!given_.emplace(name, value).second) throw UserError("argument " + name + " is given twice");
  }
}

int64_t LayerArguments::integer(const std::string& name, std::optional<int64_t> fallback, int64_t min) const {
  if (!is_given(name, fallback.has_value())) return *fallback;
  const int64_t value = to_integer(name, given_.at(name));
  require_range(name, value, min);
  return value;
}

Shape LayerArguments::integers(const std::string& name, std::optional<int64_t> fallback, int64_t min,
                               std::size_t dimensions) const {
  if (!is_given(name, fallback.has_value())) return Shape(dimensions, *fallback);
  Shape values = tuple(name);
  if (values.size() != dimensions && !(values.size() == 1 && given_.at(name).front() != '('))
    fail(name, std::to_string(dimensions) + " of them in parentheses");
  values.resize(dimensions, values.front());
  for (const int64_t value : values) require_range(name, value, min);
  return values;
}

Extent2d LayerArguments::pair(const std::string& name, std::optional<int64_t> fallback, int64_t min) const {
  const Shape both = integers(name, fallback, min, 2);
  return {both[0], both[1]};
}

Shape LayerArguments::shape(const std::string& name) const {
  is_given(name, /*has_fallback=*/false);
  Shape values = tuple(name);
  for (const int64_t value : values) require_range(name, value, 1);
  return values;
}

double LayerArguments::number(const std::string& name, double fallback) const {
  const auto argument = given_.find(name);
  if (argument == given_.end()) return fallback;
  double value = 0;
  const char* const end = argument->second.data() + argument->second.size();
  const auto [rest, error] = std::from_chars(argument->second.data(), end, value);
  if (error != std::errc() || rest != end) fail(name, "a number");
  return value;
}

std::array<double, 2> LayerArguments::factors(const std::string& name) const {
  const std::string& text = given_.at(name);
  const bool is_pair = text.front() == '(' && text.back() == ')';
  const auto parts = is_pair ? split_arguments(text.substr(1, text.size() - 2)) : std::vector{text};
  std::array<double, 2> out{};
  for (std::size_t i = 0; i < 2 && parts.size() <= 2 && !parts.empty(); ++i) {
    const std::string& part = parts[std::min(i, parts.size() - 1)];
    std::from_chars(part.data(), part.data() + part.size(), out[i]);
  }
  if (!(out[0] > 0 && out[1] > 0)) fail(name, "a number > 0, or two in parentheses");
  return out;
}

bool LayerArguments::flag(const std::string& name, bool fallback) const {
  const auto argument = given_.find(name);
  if (argument == given_.end()) return fallback;
  if (argument->second != "True" && argument->second != "False") fail(name, "True or False");
  return argument->second == "True";
}

std::string LayerArguments::text(const std::string& name, const std::string& fallback) const {
  const auto argument = given_.find(name);
  return argument == given_.end() ? fallback : argument->second;
}

// Throws if the argument is missing.
bool LayerArguments::is_given(const std::string& name, bool has_fallback) const {
  const bool given = given_.count(name) > 0;
  if (!given && !has_fallback) throw UserError("argument " + name + " is missing");
  return given;
}

Shape LayerArguments::tuple(const std::string& name) const {
  const std::string& text = given_.at(name);
  const bool is_tuple = text.size() > 1 && text.front() == '(' && text.back() == ')';
  if (!is_tuple) return {to_integer(name, text)};
  Shape values;
  for (const std::string& element : split_arguments(text.substr(1, text.size() - 2)))
    values.push_back(to_integer(name, element));
  if (values.empty()) fail(name, "at least one integer");
  return values;
}

void LayerArguments::require_range(const std::string& name, int64_t value, int64_t min) const {
  if (value < min || value > kWidestLayer)
    fail(name, "an integer from " + std::to_string(min) + " to " + std::to_string(kWidestLayer));
}

int64_t LayerArguments::to_integer(const std::string& name, const std::string& text) const {
  int64_t product = 1;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('*', begin), text.size());
    int64_t factor = 0;
    if (!is_integer(without_blanks_around(text.substr(begin, end - begin)), factor) ||
        __builtin_mul_overflow(product, factor, &product))
      fail(name, "an integer");
    begin = end + 1;
  }
  return product;
}

void LayerArguments::fail(const std::string& name, const std::string& expected) const {
  throw UserError("argument " + name + ": expected " + expected + ", found " + given_.at(name));
}

}  // namespace tutti
