#include "commands/export.h"

#include <ATen/ops/empty.h>

#include <filesystem>
#include <map>
#include <span>

#include "commands/loaded_model.h"
#include "data/tokenizers/tokenizer_files.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/checkpoint/run_state.h"
#include "io/formats/json_setting.h"
#include "io/formats/safetensors.h"
#include "models/exported/part.h"
#include "models/hub/config.h"
#include "models/hub/model.h"
#include "models/zoo/catalog.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr const char* kAverage = "algorithms/EMA";

Setting key_of(const char* name, const std::string& value) { return {value, name, {"command line"}}; }

// A checkpoint's weights, and the names under which they are exported.
class ExportedWeights {
 public:
  ExportedWeights(const Disk& disk, const Checkpoint& checkpoint, bool trained)
      : state_(RunState::from_json(checkpoint.manifest.state)), tensors_(disk, checkpoint) {
    const auto average = state_.listeners.find(kAverage);
    averaged_ = !trained && average != state_.listeners.end() && !average->second.empty();
    for (const auto& [name, entry] : tensors_.entries())
      if (name.starts_with(kModelPrefix)) add(checkpoint, name.substr(kModelPrefix.size()));
    if (sources_.empty()) throw UserError({checkpoint.folder}, "it holds no weights");
  }

  const RunState& state() const { return state_; }
  bool is_averaged() const { return averaged_; }
  const std::map<std::string, std::string>& sources() const { return sources_; }
  std::map<std::string, Shape> shapes() const {
    std::map<std::string, Shape> shapes;
    for (const auto& [name, source] : sources_) shapes[name] = entry(name).shape;
    return shapes;
  }
  // Writes a weight under another name too.
  void repeat(const std::string& name, const std::string& other) {
    if (const auto found = sources_.find(name); found != sources_.end())
      sources_.emplace(other, found->second);
  }
  const TensorSource::Entry& entry(const std::string& name) const { return tensors_.at(sources_.at(name)); }

  void write(Disk& disk, const std::string& path) const {
    const std::string fresh = path + ".new";
    Safetensors layout{{}, {{"format", "pt"}}};
    for (const auto& [name, source] : sources_)
      layout.tensors[name] =
          at::empty(entry(name).shape, at::TensorOptions(at::kMeta).dtype(entry(name).dtype));
    SafetensorsFile file(disk, fresh, layout);
    for (const auto& [name, source] : sources_) {
      const at::Tensor whole = at::empty(entry(name).shape, entry(name).dtype);
      const bool is_scalar = entry(name).shape.empty();
      tensors_.read(source, {0, is_scalar ? 1 : whole.size(0)}, whole);
      file.put(name, whole);
    }
    file.finish();
    disk.rename(fresh, path);
  }

 private:
  void add(const Checkpoint& checkpoint, const std::string& name) {
    const auto before = state_.names_before_surgery.find(name);
    const std::string& exported = before == state_.names_before_surgery.end() ? name : before->second;
    const std::string average = std::string(kAverage) + '/' + name;
    const bool uses_average = averaged_ && tensors_.contains(average);
    const auto [there, is_new] =
        sources_.emplace(exported, uses_average ? average : std::string(kModelPrefix) + name);
    if (!is_new) throw UserError({checkpoint.folder}, "two tensors would have the name '" + exported + "'");
  }

  const RunState state_;
  const CheckpointTensors tensors_;
  bool averaged_ = false;
  std::map<std::string, std::string> sources_;  // by the exported name: the checkpoint's
};

// Surgery changes what the model computes, also where names and shapes stay.
void require_plain(const Setting& key, const ExportedWeights& weights, const Setting& section) {
  for (const RequiredAlgorithm& one : weights.state().required_algorithms)
    key.fail("the model was changed by " + one.name +
             ", which transformers' models do not have; --to writes its weights alone");
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
  const Setting config = hub_config(section, hub_classes(weights.shapes()));
  require_plain(key, weights, section);
  disk.make_folders(key.text());
  write_json_object(disk, key.text() + "/config.json", config);
  copy_tokenizer(disk, weights.state(), checkpoint.folder, key.text());
  weights.write(disk, key.text() + "/model.safetensors");
}

// A module of Python's wants its tied weights under all their names, which its program has.
void repeat_tied(const Checkpoint& checkpoint, ExportedWeights& weights) {
  const Setting section = model_section(weights.state(), checkpoint.folder);
  if (section.at("kind").text() != "exported" || !std::filesystem::exists(section.at("path").text())) return;
  const exported::Archive archive(section.at("path").text());
  exported::Program program = exported::parse_program(archive.program());
  for (const auto& [other, own] : exported::join_tied(program, archive)) weights.repeat(own, other);
}

void write_file(Disk& disk, const Setting& key, const ExportedWeights& weights) {
  if (!key.text().ends_with(".safetensors")) key.fail("expected the name of a .safetensors file");
  if (!disk.replaceable(key.text())) key.fail("it is not a regular file");
  if (const auto folder = std::filesystem::path(key.text()).parent_path(); !folder.empty())
    disk.make_folders(folder);
  weights.write(disk, key.text());
}

}  // namespace

std::string export_text(const ExportOptions& options) try {
  if (options.to.empty() == options.to_hf.empty())
    throw UserError("export needs --to FILE.safetensors or --to-hf DIR, and not both");
  PosixDisk disk;
  const Checkpoint checkpoint = find_checkpoint(disk, options.path, {warn_ignored});
  ExportedWeights weights(disk, checkpoint, options.trained);
  const Setting to = options.to.empty() ? key_of("--to-hf", options.to_hf) : key_of("--to", options.to);
  if (options.to.empty()) {
    write_folder(disk, to, checkpoint, weights);
  } else {
    repeat_tied(checkpoint, weights);
    write_file(disk, to, weights);
  }
  return "written to " + to.text() + ": " + std::to_string(weights.sources().size()) + " tensors of " +
         checkpoint.folder + (weights.is_averaged() ? ", averaged by EMA" : "") + '\n';
} catch (const OperatingError& error) {
  throw UserError(error.what());
}

}  // namespace tutti
