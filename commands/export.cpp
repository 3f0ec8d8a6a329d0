#include "commands/export.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "commands/exported_weights.h"
#include "commands/loaded_model.h"
#include "data/tokenizers/tokenizer_files.h"
#include "io/checkpoint/run_state.h"
#include "io/weights/torch_writer.h"
#include "models/exported/part.h"
#include "models/hub/adapter.h"
#include "models/hub/config.h"
#include "models/hub/model.h"
#include "models/zoo/catalog.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"

namespace tutti {
namespace {

Setting key_of(const char* name, const std::string& value) { return {value, name, {"command line"}}; }

// Surgery changes what the model computes, also where names and shapes stay.
void require_plain(const Setting& key, const ExportedWeights& weights, const Setting& section) {
  for (const RequiredAlgorithm& algorithm : weights.state().required_algorithms)
    if (algorithm.name != kLora)
      key.fail("the model was changed by " + algorithm.name +
               ", which the hub's models do not have; --to writes its weights alone");
  require_hub_model(key, section, weights.shapes());
}

Setting model_section(const RunState& state, const std::string& folder) {
  const Setting recipe = parse_recipe(state.recipe, folder);
  const Catalog catalog = model_catalog();
  Setting::Table model{{"model", recipe.at("model")}};
  return resolve(Setting(std::move(model), "", recipe.position), std::span(&catalog, 1)).at("model");
}

// That of the training's data, if its files are still there.
void copy_tokenizer(Disk& disk, const RunState& state, const std::string& checkpoint,
                    const std::string& folder) {
  const Setting recipe = parse_recipe(state.recipe, checkpoint);
  const Setting* named = recipe.at("data").at("train").find("tokenizer");
  if (named && named->is_text()) copy_tokenizer_files(disk, named->text(), folder);
}

void write_folder(Disk& disk, const Setting& key, const Checkpoint& checkpoint,
                  const ExportedWeights& weights) {
  const Setting section = model_section(weights.state(), checkpoint.folder);
  const HubFolder folder = hub_folder(section, hub_width(weights.shapes()));
  require_plain(key, weights, section);
  disk.make_folders(key.text());
  folder.write_configs(disk, key.text());
  copy_tokenizer(disk, weights.state(), checkpoint.folder, key.text());
  write_safetensors_set(disk, key.text() + '/' + folder.weights, weights.entries(), kMostShardBytes,
                        [&](const std::string& name) { return weights.merged(name); });
}

// A module of Python's wants its tied weights under all their names, which its program has.
void repeat_tied(const Checkpoint& checkpoint, ExportedWeights& weights) {
  const Setting section = model_section(weights.state(), checkpoint.folder);
  if (section.at("kind").text() != "exported" || !std::filesystem::exists(section.at("path").text())) return;
  const exported::Archive archive(section.at("path").text());
  exported::Program program = exported::parse_program(archive.program());
  for (const auto& [other, own] : exported::join_tied(program, archive)) weights.repeat(own, other);
}

void prepare_file(Disk& disk, const Setting& key, std::initializer_list<const char*> endings) {
  if (std::ranges::none_of(endings, [&](const char* end) { return key.text().ends_with(end); }))
    key.fail(std::string("expected the name of a ") + *endings.begin() +
             " file; docs/hand_over.md makes ONNX or TorchScript of it");
  if (!disk.replaceable(key.text())) key.fail("it is not a regular file");
  if (const auto folder = std::filesystem::path(key.text()).parent_path(); !folder.empty())
    disk.make_folders(folder);
}

void write_safetensors_file(Disk& disk, const Setting& key, const ExportedWeights& weights) {
  prepare_file(disk, key, {".safetensors"});
  write_safetensors_set(disk, key.text(), weights.entries(), UINT64_MAX,
                        [&](const std::string& name) { return weights.merged(name); });
}

// Composer's models have the network as `module`, those of transformers as `model`.
std::string prefix_of_composer(const ExportedWeights& weights, const Checkpoint& checkpoint) try {
  hub_folder(model_section(weights.state(), checkpoint.folder), hub_width(weights.shapes()));
  return "model.";
} catch (const UserError&) {
  return "module.";
}

void write_torch(Disk& disk, const Setting& key, const std::string& layout, const ExportedWeights& weights,
                 const Checkpoint& checkpoint) {
  prepare_file(disk, key, {".pt", ".pth", ".bin"});
  const bool is_composers = layout == "composer";
  const std::string prefix = is_composers ? prefix_of_composer(weights, checkpoint) : "";
  TensorSource::Entries entries;
  for (const auto& [name, entry] : weights.entries()) entries[prefix + name] = entry;
  write_torch_file(disk, key.text(), entries,
                   is_composers ? std::vector<std::string>{"state", "model"} : std::vector<std::string>(),
                   [&](const std::string& name) { return weights.merged(name.substr(prefix.size())); });
}

}  // namespace

std::string export_text(const ExportOptions& options) try {
  const int given =
      !options.to.empty() + !options.to_hf.empty() + !options.to_torch.empty() + !options.to_peft.empty();
  if (given != 1)
    throw UserError(
        "export needs one of --to FILE.safetensors, --to-hf DIR, --to-torch FILE.pt and --to-peft DIR");
  PosixDisk disk;
  const Checkpoint checkpoint = find_checkpoint(disk, options.path, {warn_ignored});
  ExportedWeights weights(disk, checkpoint, options.trained);
  const std::string to = options.to + options.to_hf + options.to_torch + options.to_peft;
  std::size_t count = weights.size();
  if (!options.to_peft.empty()) {
    count = weights.write_adapter(disk, options.to_peft);
  } else if (!options.to_hf.empty()) {
    write_folder(disk, key_of("--to-hf", to), checkpoint, weights);
  } else {
    repeat_tied(checkpoint, weights);
    count = weights.size();
    if (options.to_torch.empty())
      write_safetensors_file(disk, key_of("--to", to), weights);
    else
      write_torch(disk, key_of("--to-torch", to), options.layout, weights, checkpoint);
  }
  return "written to " + to + ": " + std::to_string(count) + " tensors of " + checkpoint.folder +
         (weights.is_averaged() ? ", averaged by EMA" : "") + '\n';
} catch (const OperatingError& error) {
  throw UserError(error.what());
}

}  // namespace tutti
