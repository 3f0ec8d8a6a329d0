#include "commands/export.h"

#include <ATen/ops/empty.h>

#include <filesystem>
#include <map>
#include <memory>
#include <span>

#include "commands/loaded_model.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/checkpoint/run_state.h"
#include "io/formats/json_setting.h"
#include "io/formats/safetensors.h"
#include "models/zoo/bert.h"
#include "models/zoo/catalog.h"
#include "models/zoo/gpt.h"
#include "models/zoo/hub_config.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tensors/tree.h"

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

// The zoo's model of a section, on the meta device; null if transformers has none like it.
std::shared_ptr<Model> model_of(const Setting& section, int64_t classes) {
  const std::string& kind = section.at("kind").text();
  if (kind == "gpt") return std::make_shared<Gpt>(GptOptions::kind().read(section));
  if (kind == "bert_mlm") return std::make_shared<BertForMaskedLm>(BertMlmOptions::kind().read(section));
  if (kind != "bert_classification") return nullptr;
  const auto options = BertClassificationOptions::kind().read(section);
  return std::make_shared<BertForSequenceClassification>(options, classes, 0.0);
}

std::map<std::string, Shape> shapes_of(Model& model) {
  std::map<std::string, Shape> shapes;
  for (const auto& one : parameters(model)) shapes[one.name] = one.parameter->tensor.sizes().vec();
  for (const auto& one : buffers(model)) shapes[one.name] = one.buffer->tensor.sizes().vec();
  return shapes;
}

// Surgery changes what the model computes, also where names and shapes stay.
void require_plain(const Setting& key, const ExportedWeights& weights, Model& model) {
  for (const RequiredAlgorithm& one : weights.state().required_algorithms)
    key.fail("the model was changed by " + one.name +
             ", which transformers' models do not have; --to writes its weights alone");
  const std::map<std::string, Shape> expected = shapes_of(model);
  for (const auto& [name, source] : weights.sources()) {
    const auto found = expected.find(name);
    const Shape& shape = weights.entry(name).shape;
    if (found == expected.end()) key.fail("transformers' model has no tensor '" + name + "', the run's has");
    if (found->second != shape)
      key.fail("'" + name + "' is " + shape_text(shape) + ", that of transformers' model " +
               shape_text(found->second));
  }
  for (const auto& [name, shape] : expected)
    if (!weights.sources().contains(name))
      key.fail("the run's model has no tensor '" + name + "', transformers' has");
}

Setting model_section(const RunState& state, const std::string& folder) {
  const Setting recipe = parse_recipe(state.recipe, folder);
  const Catalog catalog = model_catalog();
  Setting::Table model{{"model", recipe.at("model")}};
  return resolve(Setting(std::move(model), "", recipe.position), std::span(&catalog, 1)).at("model");
}

int64_t classes_of(const ExportedWeights& weights) {
  constexpr const char* kHead = "classifier.weight";
  return weights.sources().contains(kHead) ? weights.entry(kHead).shape.at(0) : 0;
}

void write_text(Disk& disk, const std::string& path, const std::string& text) {
  const auto file = disk.open(path, true);
  file->append(std::as_bytes(std::span(text)));
  file->sync();
  file->close();
}

void write_folder(Disk& disk, const Setting& key, const Checkpoint& checkpoint,
                  const ExportedWeights& weights) {
  const Setting section = model_section(weights.state(), checkpoint.folder);
  const int64_t classes = classes_of(weights);
  const Setting config = hub_config(section, classes);
  require_plain(key, weights, *model_of(section, classes));
  disk.make_folders(key.text());
  write_text(disk, key.text() + "/config.json", json_object_text(config));
  weights.write(disk, key.text() + "/model.safetensors");
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
  const ExportedWeights weights(disk, checkpoint, options.trained);
  const Setting to = options.to.empty() ? key_of("--to-hf", options.to_hf) : key_of("--to", options.to);
  if (options.to.empty())
    write_folder(disk, to, checkpoint, weights);
  else
    write_file(disk, to, weights);
  return "written to " + to.text() + ": " + std::to_string(weights.sources().size()) + " tensors of " +
         checkpoint.folder + (weights.is_averaged() ? ", averaged by EMA" : "") + '\n';
} catch (const OperatingError& error) {
  throw UserError(error.what());
}

}  // namespace tutti
