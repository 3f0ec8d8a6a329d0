#include "io/json_line.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tutti {
namespace {

std::string number(double value, const char* format) {
  if (!std::isfinite(value)) return std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"";
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

struct Writer {
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(float value) const { return number(value, "%.9g"); }
  std::string operator()(double value) const { return number(value, "%.17g"); }
  std::string operator()(const std::string& value) const { return nlohmann::json(value).dump(); }
};

}  // namespace

std::string json_line(const JsonFields& fields) {
  std::string line = "{";
  for (const auto& [key, value] : fields) {
    if (line.size() > 1) line += ", ";
    line += nlohmann::json(key).dump() + ": " + std::visit(Writer{}, value);
  }
  return line + "}";
}

int64_t json_integer(const std::string& line, const std::string& key, int64_t fallback) {
  const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains(key) || !object[key].is_number_integer()) return fallback;
  return object[key].get<int64_t>();
}

}  // namespace tutti
