#include "io/json/json_setting.h"

#include "io/json/json_text.h"
#include "io/replaced_file.h"
#include "runtime/disk.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMostJsonBytes = uint64_t{64} << 20;

Setting setting_of(const Json& json, const std::string& path, const Position& position) {
  Setting setting({}, path, position);
  if (json.is_boolean()) setting.value = json.get<bool>();
  if (json.is_string()) setting.value = json.get<std::string>();
  if (json.is_number_float()) setting.value = json.get<double>();
  if (json.is_number_integer()) setting.value = integer_member(Json{{"value", json}}, "value");
  if (json.is_array()) {
    Setting::Array items;
    for (const Json& item : json) items.push_back(setting_of(item, path, position));
    setting.value = std::move(items);
  }
  if (json.is_object()) {
    Setting::Table members;
    for (const auto& [key, value] : json.items())
      members.emplace_back(key, setting_of(value, path_below(path, key), position));
    setting.value = std::move(members);
  }
  return setting;
}

}  // namespace

Json json_of(const Setting& value) {
  return std::visit(
      [](const auto& held) -> Json {
        using Held = std::decay_t<decltype(held)>;
        Json out;
        if constexpr (std::is_same_v<Held, Setting::Array>) {
          out = Json::array();
          for (const auto& item : held) out.push_back(json_of(item));
        } else if constexpr (std::is_same_v<Held, Setting::Table>) {
          out = Json::object();
          for (const auto& [name, member] : held) out[name] = json_of(member);
        } else if constexpr (!std::is_same_v<Held, std::monostate>) {
          out = held;
        }
        return out;
      },
      value.value);
}

Setting read_json_object(const std::string& path) try {
  const Json json = parse_json<Json>(PosixDisk().read_text(path, kMostJsonBytes));
  if (!json.is_object()) throw UserError({path}, "expected a JSON object");
  return setting_of(json, "", {path});
} catch (const Json::parse_error& error) {
  throw UserError({path}, "byte " + std::to_string(error.byte) + ": it is not JSON");
} catch (const OperatingError& error) {
  throw UserError(error.what());
}

std::string json_object_text(const Setting& table) { return json_of(table).dump(2) + '\n'; }

void write_json_object(Disk& disk, const std::string& path, const Setting& table) {
  replace_file(disk, path, json_object_text(table));
}

}  // namespace tutti
