#include "job/recipe_catalogs.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "algorithms/catalog.h"
#include "collectives/catalog.h"
#include "data/readers/catalog.h"
#include "data/transforms/options.h"
#include "io/checkpoint/checkpoint_catalog.h"
#include "io/remote/remote_catalog.h"
#include "io/weights/model_cache.h"
#include "job/names/deepspeed.h"
#include "job/names/foreign_names.h"
#include "job/sections.h"
#include "job/written_split.h"
#include "models/hub/section.h"
#include "models/loss_options.h"
#include "models/zoo/catalog.h"
#include "recipe/placeholders.h"
#include "recipe/resolve.h"
#include "recipe/set_key.h"
#include "runtime/nearest_name.h"
#include "runtime/user_errors.h"
#include "sharding/catalog.h"
#include "training/callbacks/options.h"
#include "training/evaluation/catalog.h"
#include "training/loggers/options.h"
#include "training/metrics/options.h"
#include "training/optimizers/options.h"
#include "training/schedules/schedule.h"
#include "training/settings.h"

namespace tutti {
namespace {

constexpr std::size_t kCatalogsOfTables = 3;  // at the end of all_catalogs: of tables within sections

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

// Runs of earlier versions have the default in their recipes.
Setting without_reduction(Setting written) {
  Setting* collectives = written.is_table() ? written.find("collectives") : nullptr;
  if (!collectives || !collectives->is_table()) return written;
  const Setting* reduction = collectives->find("reduction");
  if (reduction && reduction->is_text() && reduction->text() == "native")
    reduction->fail(
        "sums are always in the order of the ranks now, with the same bits in every run; leave the key out");
  std::erase_if(collectives->table(), [](const auto& entry) {
    return entry.first == "reduction" && entry.second.is_text() && entry.second.text() == "ordered";
  });
  return written;
}

void find_cached(Setting* section, const char* key, const std::filesystem::path& folder, ModelCache cache) {
  Setting* name = section && section->is_table() ? section->find(key) : nullptr;
  if (name) *name = cached_model(*name, folder, cache);
}

// Also in the sources of a mixture.
void find_tokenizers(Setting* section, const std::filesystem::path& folder) {
  find_cached(section, "tokenizer", folder, ModelCache::kHuggingFace);
  Setting* sources = section && section->is_table() ? section->find("sources") : nullptr;
  if (sources && sources->is_array())
    for (Setting& source : std::get<Setting::Array>(sources->value))
      find_cached(&source, "tokenizer", folder, ModelCache::kHuggingFace);
}

// Paths in place of the names of models in this machine's caches; the zoo's model for one of kind = "hf".
Setting with_pretrained_models(Setting written) {
  if (!written.is_table()) return written;
  const auto folder = std::filesystem::absolute(written.position.file).parent_path();
  if (Setting* data = written.find("data"); data && data->is_table())
    for (const char* part : {"train", "eval"}) find_tokenizers(data->find(part), folder);
  if (Setting* evaluators = written.find("evaluators"); evaluators && evaluators->is_array())
    for (Setting& section : std::get<Setting::Array>(evaluators->value)) find_tokenizers(&section, folder);
  if (Setting* algorithms = written.find("algorithms"); algorithms && algorithms->is_array())
    for (Setting& algorithm : std::get<Setting::Array>(algorithms->value))
      for (const char* key : {"teacher", "reference"})
        find_cached(&algorithm, key, folder, ModelCache::kHuggingFace);
  Setting* model = written.find("model");
  if (!model) return written;
  const Setting* kind = model->is_table() ? model->find("kind") : nullptr;
  if (kind && kind->is_text() && same_name(kind->text(), "hf"))
    find_cached(model, "path", folder, ModelCache::kHuggingFace);
  find_cached(model, "weights", folder, ModelCache::kAny);
  *model = zoo_model(*model, folder);
  return written;
}

// Gives kinds the names of the classes that they are: "[[callbacks]] kind = "speed_monitor"" is SpeedMonitor.
std::vector<Catalog> with_class_names(std::vector<Catalog> catalogs) {
  for (Catalog& catalog : catalogs) {
    const std::string place =
        (catalog.repeated ? "[[" + catalog.section + "]]" : '[' + catalog.section + ']') + " kind = \"";
    for (const auto& [name, target, note, origin] : foreign_names()) {
      if (!target.starts_with(place) || !std::isupper(static_cast<unsigned char>(name[0]))) continue;
      const std::string kind = target.substr(place.size(), target.size() - place.size() - 1);
      const auto entry = std::ranges::find(catalog.entries, kind, &Entry::name);
      if (entry != catalog.entries.end() && entry->origin.composer.empty()) entry->origin.composer = name;
    }
  }
  return catalogs;
}

void fill_fetch(Setting* section, const RemoteKeys& keys) {
  if (!section || !section->is_table() || !section->has("remote") || section->has("fetch")) return;
  const RemoteCommands commands = keys.commands(section->at("remote"));
  set_key(*section, "fetch", keys.fetch_command->has_value() ? commands.fetch : **keys.command);
}

// Data and checkpoints of a remote store need the commands of [remote]; data may have a `fetch` instead.
void connect_remote(Setting& recipe, const CheckpointKeys& checkpoint) {
  const RemoteKeys keys = RemoteKeys::read(recipe);
  const auto& folder = checkpoint.save_folder;
  if (folder->has_value() && is_remote_path(**folder)) keys.commands(folder.key);
  const Setting& from = checkpoint.resume;
  if (from.is_text() && is_remote_path(from.text())) keys.commands(from);
  if (!recipe.has("remote")) return;
  Setting& data = *recipe.find("data");
  for (const char* part : {"train", "eval"}) fill_fetch(data.find(part), keys);
  for (Setting& section : std::get<Setting::Array>(recipe.find("evaluators")->value))
    fill_fetch(&section, keys);
}

}  // namespace

std::span<const Catalog> all_catalogs() {
  static const std::vector<Catalog> catalogs = with_class_names({section_catalog<RunKeys>(),
                                                                 model_catalog(),
                                                                 train_data_catalog(),
                                                                 eval_catalog(),
                                                                 evaluators_catalog(),
                                                                 optimizer_catalog(),
                                                                 scheduler_catalog(),
                                                                 train_catalog(),
                                                                 section_catalog<PrecisionSettings>(),
                                                                 device_catalog(),
                                                                 section_catalog<CollectiveSettings>(),
                                                                 sharding_catalog(),
                                                                 section_catalog<ReproducibilitySettings>(),
                                                                 section_catalog<CheckpointKeys>(),
                                                                 remote_catalog(),
                                                                 section_catalog<JournalSettings>(),
                                                                 profiler_catalog(),
                                                                 section_catalog<CompatSettings>(),
                                                                 deepspeed_catalog(),
                                                                 section_catalog<PluginSettings>(),
                                                                 algorithm_catalog(),
                                                                 callback_catalog(),
                                                                 logger_catalog(),
                                                                 transform_catalog(),
                                                                 metric_catalog(),
                                                                 loss_catalog()});
  return catalogs;
}

std::span<const Catalog> recipe_catalogs() {
  return all_catalogs().first(all_catalogs().size() - kCatalogsOfTables);
}

Setting resolve_recipe(const Setting& given) {
  const Setting written = chosen_stage(given);
  const Setting whole = with_split(without_reduction(written));
  Setting recipe = resolve(with_deepspeed(with_automatic_accumulation(with_pretrained_models(whole))),
                           recipe_catalogs(), foreign_names());
  const CheckpointKeys checkpoint = CheckpointKeys::kind().read(recipe.at("checkpoint"));
  // A run finds its own checkpoints by its name and folder, so must not have default ones.
  if (checkpoint.autoresume && !written.find("run_name"))
    checkpoint.autoresume.fail("it needs run_name, which is missing");
  if (checkpoint.autoresume && !checkpoint.save_folder->has_value())
    checkpoint.autoresume.fail("it needs checkpoint.save_folder, which is missing");
  connect_remote(recipe, checkpoint);
  return recipe;
}

std::vector<Stage> resolve_stages(const Setting& written) {
  if (!has_stages(written)) return {{"", resolve_recipe(written)}};
  std::vector<Stage> stages = written_stages(written);
  MistakeCollector mistakes;
  for (Stage& stage : stages)
    mistakes.collect([&] {
      stage.recipe = resolve_recipe(stage.recipe);
      // Of kind = "hf", resolving finds the weights.
      if (&stage != &stages.front()) stage.recipe.find("model")->find("weights")->value = std::monostate();
    });
  mistakes.throw_all();
  return stages;
}

}  // namespace tutti
