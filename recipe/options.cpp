#include "recipe/options.h"

namespace tutti {
namespace {

template <class Value>
std::string list_text(const std::vector<Value>& values) {
  Setting::Array items;
  for (const Value& value : values) items.emplace_back(value, "", Position());
  return Setting(std::move(items), "", {}).toml();
}

}  // namespace

std::string option_text(double value) {
  std::string text = Setting(value, "", {}).toml();
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  const std::size_t exponent = text.find("e-0");  // TOML's 1e-05
  if (exponent != std::string::npos) text.erase(exponent + 2, 1);
  return text;
}

std::string OptionType<std::vector<int64_t>>::text(const std::vector<int64_t>& values) {
  return list_text(values);
}

std::string OptionType<std::vector<double>>::text(const std::vector<double>& values) {
  return list_text(values);
}

std::string OptionType<std::vector<std::string>>::text(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ", ") + value;
  return '[' + text + ']';
}

}  // namespace tutti
