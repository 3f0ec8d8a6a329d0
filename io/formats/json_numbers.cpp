#include "io/formats/json_numbers.h"

#include <limits>
#include <optional>

#include "io/formats/json_text.h"

namespace tutti {
namespace {

std::optional<double> number_in(const nlohmann::ordered_json& value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return kInfinity;
  return text == "-inf" ? std::optional(-kInfinity) : std::nullopt;
}

}  // namespace

JsonNumbers json_numbers_of(std::string_view line) {
  const auto object = parse_json<nlohmann::ordered_json>(line, nullptr, /*allow_exceptions=*/false);
  JsonNumbers numbers{object.is_object(), {}};
  if (!numbers.valid) return numbers;
  for (const auto& [key, value] : object.items())
    if (const auto number = number_in(value)) numbers.members.emplace_back(key, *number);
  return numbers;
}

}  // namespace tutti
