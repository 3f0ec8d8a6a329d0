#include "cli/convert/yaml_reader.h"
#include "job/recipe_catalogs.h"
#include "recipe/resolve.h"
#include "recipe/setting.h"
#include "recipe/time/time.h"
#include "recipe/toml_reader.h"
#include "tests/fuzz/file_in_memory.h"
#include "tests/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

// Asks for every value as every type.
void read_values(const Setting& setting) {
  read_or_refuse([&] { setting.boolean(); });
  read_or_refuse([&] { setting.integer(); });
  read_or_refuse([&] { setting.number(); });
  read_or_refuse([&] { setting.integers(); });
  read_or_refuse([&] { setting.numbers(); });
  read_or_refuse([&] { setting.texts(); });
  read_or_refuse([&] { Time::parse(setting); });
  if (setting.is_table())
    for (const auto& [key, member] : setting.table()) read_values(member);
  if (setting.is_array())
    for (const Setting& item : setting.array()) read_values(item);
}

}  // namespace

void recipe(const std::string& bytes) {
  read_or_refuse([&] {
    const Setting written = parse_recipe(bytes, "/nowhere/r.toml");
    read_values(written);
    const Setting resolved = resolve_recipe(written);
    // A resolved recipe is kept as TOML with each run, and read again.
    const Setting again = parse_recipe(write_recipe(resolved), "/nowhere/r.toml");
    if (const auto differing = recipe_difference(resolved, again); !differing.empty())
      throw std::logic_error("a recipe reads back as another one: " + differing.front());
  });
}

void yaml(const std::string& bytes) {
  read_or_refuse([&] { read_values(parse_yaml(bytes, "/nowhere/r.yaml")); });
}

void time_text(const std::string& bytes) {
  read_or_refuse([&] {
    const Time time = Time::parse(bytes);
    if (!(Time::parse(time.text()) == time)) throw std::logic_error("a time reads back as another one");
  });
  read_or_refuse([&] { Time::parse_composer(bytes).text(); });
  read_or_refuse([&] { Time::parse(Setting(bytes, "train.max_duration", {"r.toml", 1})); });
}

}  // namespace tutti::fuzz
