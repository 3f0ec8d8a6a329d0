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
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
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
