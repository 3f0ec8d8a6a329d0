#include "training/loggers/trackers/tracked_names.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "io/json/json_line.h"
#include "runtime/random.h"
#include "training/loggers/json_lines.h"

namespace tutti {
namespace {

bool is_plain(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; }

}  // namespace

bool is_system_metric(const std::string& name) {
  if (name == "cpu_percentage") return true;
  return std::ranges::any_of(std::initializer_list<const char*>{"cpu_memory_", "disk_memory_", "network_"},
                             [&](const char* begin) { return name.starts_with(begin); });
}

std::string tracked_path(const std::string& name) {
  std::string path;
  for (const char c : name) {
    const bool begins = path.empty() || path.back() == '/';
    path += is_plain(c) || (!begins && (c == '.' || c == '/')) ? c : '_';
  }
  if (!path.empty() && path.back() == '/') path.back() = '_';
  return path.empty() ? "_" : path;
}

std::string tracked_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string tracked_json(const Hyperparameter& value) {
  if (const auto* number = std::get_if<double>(&value)) return tracked_number(*number);
  const std::string object = json_of(LoggedHyperparameters{{"", value}});  // {"": value}
  return object.substr(5, object.size() - 6);
}

std::string tracked_id(const LogStart& start, int64_t unix_ms, int characters, int base) {
  const RandomKey key(static_cast<uint64_t>(unix_ms), start.run_dir + "\n" + start.run_name);
  const RandomKey own = key.fold_in(static_cast<uint64_t>(::getpid()));
  std::string id;
  for (int i = 0; i < characters; ++i)
    id += "0123456789abcdefghijklmnopqrstuvwxyz"[own.below(base, static_cast<uint64_t>(i))];
  return id;
}

}  // namespace tutti
