#include "job/recipe_catalogs.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "algorithms/catalog.h"
#include "collectives/catalog.h"
#include "data/readers/catalog.h"
#include "data/transforms/options.h"
#include "io/checkpoint/checkpoint_catalog.h"
#include "io/formats/json_setting.h"
#include "job/deepspeed.h"
#include "job/names/foreign_names.h"
#include "models/hub/config.h"
#include "models/hub/diffusers.h"
#include "models/loss_options.h"
#include "models/zoo/catalog.h"
#include "recipe/resolve.h"
#include "runtime/nearest_name.h"
#include "sharding/catalog.h"
#include "training/callbacks/options.h"
#include "training/catalog.h"
#include "training/evaluation/catalog.h"
#include "training/loggers/options.h"
#include "training/metrics/options.h"
#include "training/optimizers/options.h"
#include "training/schedules/schedule.h"

namespace tutti {
namespace {

constexpr std::size_t kCatalogsOfTables = 3;  // at the end of all_catalogs: of tables within sections

Catalog device_catalog() {
  return {.section = "device",
          .noun = "device",
          .doc = "What computes.",
          .keys = {Key{"threads", KeyType::kInteger, "1",
                       "CPU threads of a rank; another number gives other bits"}
                       .at_least(1)
                       .less_than(1025),
                   Key{"tf32", KeyType::kBoolean, "false",
                       "float32 products and convolutions on GPUs may use TF32: faster, less precise"},
                   Key{"memory_budget_mb", KeyType::kNumberOrNumbers, "none",
                       "MB of tensors with which a rank runs out of memory; a list: one a rank"}
                       .more_than(0)},
          .entries = {{"auto", "A GPU for each rank if this machine and this build have GPUs, else the CPU."},
                      {"cpu", "The CPU."},
                      {"gpu", "A GPU for each rank: NVIDIA's, by CUDA."},
                      {"cuda", "The same as gpu."},
                      {"test", "The device of tutti's own tests, slow and strict, in a build with tests."}},
          .default_kind = "auto"};
}

Catalog journal_catalog() {
  return {
      .section = "journal",
      .noun = "",
      .doc =
          "What every rank writes down, beside the checkpoints: for replay, for a timeline, and for after a "
          "crash.",
      .keys = {Key{"level", KeyType::kText, "full",
                   "control: every message and what the outside answered; full: also hashes of batches, "
                   "losses, gradients and weights"}
                   .one_of({"off", "control", "full"}),
               Key{"keep", KeyType::kInteger, "none",
                   "newest starts whose journals stay, this one among them; all when absent"}
                   .at_least(1)}};
}

Catalog plugins_catalog() {
  return {.section = "plugins",
          .noun = "",
          .doc =
              "A shared library of your own, which brings what the recipe calls by kind = \"plugin\". "
              "`tutti check` opens it too, and so runs its code: to check a recipe is to trust its library.",
          .keys = {{"library", KeyType::kPath, "none", "the library; examples/cpp/plugin.cpp is one"}}};
}

// device_train_microbatch_size = "auto" (Composer) means grad_accum = "auto".
Setting with_automatic_accumulation(Setting written) {
  Setting* train = written.is_table() ? written.find("train") : nullptr;
  if (!train || !train->is_table() || train->find("grad_accum")) return written;
  for (auto& [key, value] : train->table())
    if (key == "device_train_microbatch_size" && value.is_text() && value.text() == "auto") {
      key = "grad_accum";
      value.path = "train.grad_accum";
    }
  return written;
}

// The folder itself, or that of the network in a folder of diffusers' pipeline.
std::string hub_model_folder(const Setting& path) {
  for (const std::string& folder : {path.text(), path.text() + "/unet"})
    if (std::filesystem::exists(folder + "/config.json")) return folder;
  path.fail("it has no config.json, as folders of Hugging Face's transformers and diffusers have");
}

// kind = "hf": the model of a folder of Hugging Face's, by the zoo's name for it, with the folder's weights.
Setting with_hub_model(Setting written) {
  Setting* model = written.is_table() ? written.find("model") : nullptr;
  const Setting* kind = model && model->is_table() ? model->find("kind") : nullptr;
  if (!kind || !kind->is_text() || !same_name(kind->text(), "hf")) return written;
  const std::filesystem::path recipe = std::filesystem::absolute(written.position.file);
  const Setting asked = resolve_section(model_catalog(), *model, {.folder = recipe.parent_path()});
  const std::string folder = hub_model_folder(asked.at("path"));
  const std::string config = folder + "/config.json";
  Setting::Table section;
  try {
    section = zoo_section(read_json_object(config), asked);
    for (const char* scheduler : {"/scheduler_config.json", "/../scheduler/scheduler_config.json"})
      if (const std::string file = folder + scheduler; std::filesystem::exists(file))
        for (auto& one : noise_section(read_json_object(file))) section.push_back(std::move(one));
  } catch (const UserError& error) {
    asked.at("path").fail(error);
  }
  require_taken(asked, Setting(section, "model", {}).at("kind").text());
  const Position of_config{config};
  for (auto& [key, value] : section)
    if (value.position.file.empty()) {
      value.path = path_below("model", key);
      value.position = key == "kind" ? kind->position : of_config;
    }
  model->position = of_config;  // and of the defaults
  if (!model->find("weights")) {
    section.emplace_back("weights", asked.at("path"));
    section.back().second.value = folder;
    section.back().second.path = "model.weights";
  }
  for (const auto& [key, value] : model->table())
    if (std::ranges::any_of(model_catalog().keys, [&](const Key& one) { return one.name == key; }))
      section.emplace_back(key, value);
  model->value = std::move(section);
  return written;
}

// Gives kinds the names of the classes that they are: "[[callbacks]] kind = "speed_monitor"" is SpeedMonitor.
std::vector<Catalog> with_class_names(std::vector<Catalog> catalogs) {
  for (Catalog& catalog : catalogs) {
    const std::string place =
        (catalog.repeated ? "[[" + catalog.section + "]]" : '[' + catalog.section + ']') + " kind = \"";
    for (const ForeignName& one : foreign_names()) {
      if (!one.target.starts_with(place) || !std::isupper(static_cast<unsigned char>(one.name[0]))) continue;
      const std::string kind = one.target.substr(place.size(), one.target.size() - place.size() - 1);
      const auto entry = std::ranges::find(catalog.entries, kind, &Entry::name);
      if (entry != catalog.entries.end() && entry->origin.composer.empty()) entry->origin.composer = one.name;
    }
  }
  return catalogs;
}

}  // namespace

std::span<const Catalog> all_catalogs() {
  static const std::vector<Catalog> catalogs =
      with_class_names({run_catalog(),        model_catalog(),     train_data_catalog(),  eval_catalog(),
                        evaluators_catalog(), optimizer_catalog(), scheduler_catalog(),   train_catalog(),
                        precision_catalog(),  device_catalog(),    collectives_catalog(), sharding_catalog(),
                        checkpoint_catalog(), journal_catalog(),   profiler_catalog(),    compat_catalog(),
                        deepspeed_catalog(),  plugins_catalog(),   algorithm_catalog(),   callback_catalog(),
                        logger_catalog(),     transform_catalog(), metric_catalog(),      loss_catalog()});
  return catalogs;
}

std::span<const Catalog> recipe_catalogs() {
  return all_catalogs().first(all_catalogs().size() - kCatalogsOfTables);
}

Setting resolve_recipe(const Setting& written) {
  Setting recipe = resolve(with_deepspeed(with_automatic_accumulation(with_hub_model(written))),
                           recipe_catalogs(), foreign_names());
  const Setting& checkpoint = recipe.at("checkpoint");
  const Setting& autoresume = checkpoint.at("autoresume");
  // A run finds its own checkpoints by its name and folder, so must not have default ones.
  if (autoresume.boolean() && !written.find("run_name"))
    autoresume.fail("it needs run_name, which is missing");
  if (autoresume.boolean() && !checkpoint.has("save_folder"))
    autoresume.fail("it needs checkpoint.save_folder, which is missing");
  return recipe;
}

}  // namespace tutti
