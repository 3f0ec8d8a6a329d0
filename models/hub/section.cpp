#include "models/hub/section.h"

#include <algorithm>
#include <utility>

#include "io/json/json_setting.h"
#include "models/hub/config.h"
#include "models/hub/diffusers.h"
#include "models/zoo/catalog.h"
#include "recipe/resolve.h"
#include "runtime/nearest_name.h"

namespace tutti {
namespace {

// The folder itself, or that of the network in a folder of diffusers' pipeline; "" if there is none.
std::string folder_of_network(const std::string& path) {
  for (const std::string& folder : {path, path + "/unet"})
    if (std::filesystem::exists(folder + "/config.json")) return folder;
  return "";
}

Setting::Table read_hub_section(const std::string& folder, const Setting& asked) try {
  Setting::Table section = zoo_section(read_json_object(folder + "/config.json"), asked);
  for (const char* scheduler : {"/scheduler_config.json", "/../scheduler/scheduler_config.json"})
    if (const std::string file = folder + scheduler; std::filesystem::exists(file))
      for (auto& key : noise_section(read_json_object(file))) section.push_back(std::move(key));
  return section;
} catch (const UserError& error) {
  asked.at("path").fail(error);
}

// Says where values without a position are from.
void place(Setting::Table& section, const std::string& path, const Setting& kind, const Position& config) {
  for (auto& [key, value] : section)
    if (value.position.file.empty()) {
      value.path = path_below(path, key);
      value.position = key == "kind" ? kind.position : config;
    }
}

}  // namespace

bool is_hub_folder(const std::string& path) { return !folder_of_network(path).empty(); }

Setting zoo_model(Setting given, const std::filesystem::path& base) {
  const Setting* kind = given.is_table() ? given.find("kind") : nullptr;
  if (!kind || !kind->is_text() || !same_name(kind->text(), "hf")) return given;
  const Setting asked = resolve_section(model_catalog(), given, {.folder = base});
  const Setting& path = asked.at("path");
  const std::string folder = folder_of_network(path.text());
  if (folder.empty())
    path.fail("it has no config.json, as folders of Hugging Face's transformers and diffusers have");
  Setting::Table section = read_hub_section(folder, asked);
  require_taken(asked, Setting(section, given.path, {}).at("kind").text());
  const Position config_position{folder + "/config.json"};
  place(section, given.path, *kind, config_position);
  given.position = config_position;  // and of the defaults
  if (!given.find("weights")) {
    section.emplace_back("weights", path);
    section.back().second.value = folder;
    section.back().second.path = path_below(given.path, "weights");
  }
  for (const auto& [key, value] : given.table())
    if (std::ranges::any_of(model_catalog().keys, [&](const Key& one) { return one.name == key; }))
      section.emplace_back(key, value);
  given.value = std::move(section);
  return given;
}

}  // namespace tutti
