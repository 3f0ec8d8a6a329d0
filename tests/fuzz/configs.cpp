// Settings that other programs wrote, and fitted tables of checkpoints.
#include "cli/convert/foundry.h"
#include "cli/convert/yaml_reader.h"
#include "data/tables/fitted_table.h"
#include "job/recipe_catalogs.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "tests/fuzz/file_in_memory.h"
#include "tests/fuzz/targets.h"

namespace tutti::fuzz {
namespace {

// The recipe of a folder of a hub, with the model as the zoo calls it.
void resolve_model_of(const std::string& folder, const std::string& more) {
  read_or_refuse([&] {
    const std::string written = "[model]\nkind = 'hf'\npath = '" + folder + "'\n" + more;
    write_recipe(resolve_recipe(parse_recipe(written, "/nowhere/r.toml")));
  });
}

}  // namespace

void hub_config(const std::string& bytes) {
  const std::string file = write_file("hub/config.json", bytes);
  const std::string folder = file.substr(0, file.rfind('/'));
  resolve_model_of(folder, "");
  resolve_model_of(folder, "head = 'classification'\nnum_classes = 3\n");
}

void noise_config(const std::string& bytes) {
  static const std::string network = write_file(
      "pipeline/unet/config.json", source_file("tests/fuzz/corpus/hub_config/diffusion_unet.json"));
  write_file("pipeline/scheduler/scheduler_config.json", bytes);
  resolve_model_of(network.substr(0, network.rfind("/unet/")), "");
}

void foundry(const std::string& bytes) {
  read_or_refuse([&] { write_recipe(recipe_of_foundry(parse_yaml(bytes, "/nowhere/mpt.yaml")).recipe()); });
}

void fitted_table(const std::string& bytes) {
  read_or_refuse([&] {
    const FittedTable fitted = FittedTable::from_json(bytes);
    fitted.spec();
    if (FittedTable::from_json(fitted.to_json()).to_json() != fitted.to_json())
      throw std::logic_error("a fitted table reads back as another one");
  });
}

}  // namespace tutti::fuzz
