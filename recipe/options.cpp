#include "recipe/options.h"

#include <array>
#include <charconv>

namespace tutti {
namespace {

template <class Value>
std::string list_text(const std::vector<Value>& values, std::string (*text)(const Value&)) {
  std::string list;
  for (const Value& value : values) list += (list.empty() ? "" : ", ") + text(value);
  return '[' + list + ']';
}

}  // namespace

std::string option_text(double value) {
  std::array<char, 32> chars{};
  std::string text(chars.data(), std::to_chars(chars.data(), chars.data() + chars.size(), value).ptr);
  const std::size_t exponent = text.find("e-0");  // to_chars writes 1e-05
  if (exponent != std::string::npos) text.erase(exponent + 2, 1);
  return text;
}

std::string OptionType<std::vector<int64_t>>::text(const std::vector<int64_t>& values) {
  return list_text<int64_t>(values, [](const int64_t& value) { return std::to_string(value); });
}

std::string OptionType<std::vector<double>>::text(const std::vector<double>& values) {
  return list_text<double>(values, [](const double& value) { return option_text(value); });
}

std::string OptionType<std::vector<std::string>>::text(const std::vector<std::string>& values) {
  return list_text<std::string>(values, [](const std::string& value) { return '"' + value + '"'; });
}

}  // namespace tutti
