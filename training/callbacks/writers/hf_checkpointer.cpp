#include "training/callbacks/writers/hf_checkpointer.h"

#include <map>
#include <optional>
#include <utility>

#include "data/dataset.h"
#include "data/tokenizers/tokenizer.h"
#include "data/tokenizers/tokenizer_files.h"
#include "io/formats/json_setting.h"
#include "models/hub/config.h"
#include "models/hub/model.h"
#include "training/callbacks/factory.h"
#include "training/callbacks/writers/file_names.h"
#include "training/callbacks/writers/weights_file.h"
#include "training/state.h"

namespace tutti {
namespace {

std::map<std::string, Shape> shapes_in(const State& state) {
  std::map<std::string, Shape> shapes;
  for (const auto& one : state.parameters) shapes[one.name] = one.parameter->tensor.sizes().vec();
  for (const auto& one : state.buffers) shapes[one.name] = one.buffer->tensor.sizes().vec();
  return shapes;
}

std::optional<at::ScalarType> dtype_of(const std::string& precision) {
  if (precision == "float32") return at::kFloat;
  return precision == "float16" ? at::kHalf : at::kBFloat16;
}

}  // namespace

HfCheckpointer::HfCheckpointer(Disk& disk, const HfCheckpointerOptions& options, Setting key, Setting model)
    : PeriodicCallback(options.save_interval),
      disk_(disk),
      options_(options),
      key_(std::move(key)),
      model_(std::move(model)) {}

void HfCheckpointer::require(const State& state) const {
  try {
    hub_config(model_, hub_classes(shapes_in(state)));
  } catch (const UserError& error) {
    key_.at("kind").fail(error);
  }
  for (const RequiredAlgorithm& one : state.required_algorithms)
    key_.at("kind").fail("the model is changed by " + one.name + ", which transformers' models do not have");
  require_hub_model(key_.at("kind"), model_, shapes_in(state));
}

void HfCheckpointer::interval_passed(const State& state) {
  if (std::exchange(last_batch_, state.timestamp.batch) == state.timestamp.batch) return;
  const std::string folder = file_name(state, options_.path());
  write_weights_file(state, disk_, folder + "/model.safetensors", dtype_of(options_.precision));
  if (state.topology.rank == 0) warn_if_unwritten([&] { write_config(state, folder); });
}

void HfCheckpointer::write_config(const State& state, const std::string& folder) const {
  Setting config = hub_config(model_, hub_classes(shapes_in(state)));
  if (options_.precision != "float32")
    config.table().emplace_back("torch_dtype", Setting(options_.precision, "torch_dtype", {}));
  disk_.make_folders(folder);
  write_json_object(disk_, folder + "/config.json", config);
  if (const auto tokenizer = state.dataset ? state.dataset->tokenizer() : nullptr)
    copy_tokenizer_files(disk_, tokenizer->path(), folder);
}

CallbackPtr HfCheckpointerOptions::make(const Setting& section,
                                        const CallbackEnvironment& environment) const {
  return std::make_shared<HfCheckpointer>(environment.disk, *this, section, environment.model);
}

}  // namespace tutti
