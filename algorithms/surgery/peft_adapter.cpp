#include "algorithms/surgery/peft_adapter.h"

#include <filesystem>
#include <set>

#include "io/json/json_setting.h"
#include "io/weights/weights.h"
#include "models/hub/adapter.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {
namespace {

void require_equal(const Setting& config, const char* key, double value, const char* own_key) {
  const double theirs = config.at(key).number();
  if (theirs != value)
    config.at(key).fail("the recipe has " + std::string(own_key) + " = " + option_text(value) +
                        "; give it this value");
}

// Some ways to start an adapter take its first product from the weights of the base, and PEFT takes it from
// them again wherever it reads the adapter.
void require_weights_of_base(const Setting& config) {
  if (!config.has("init_lora_weights") || !config.at("init_lora_weights").is_text()) return;
  const Setting& start = config.at("init_lora_weights");
  for (const char* changing : {"pissa", "olora", "corda", "loftq"})
    if (start.text().starts_with(changing))
      start.fail(
          "the adapter is of other weights than the base's; expected one that PEFT converted: "
          "save_pretrained with path_initial_model_for_weight_conversion");
}

// What changes the meaning of the weights must be as here.
void require_config(const Setting& config, const LoraOptions& options) {
  if (config.at("peft_type").text() != "LORA") config.at("peft_type").fail("expected LORA");
  require_equal(config, "r", static_cast<double>(options.r), "r");
  require_equal(config, "lora_alpha", options.alpha, "alpha");
  const bool rank_stabilised = config.has("use_rslora") && config.at("use_rslora").boolean();
  if (rank_stabilised != options.use_rslora)
    config.fail(std::string("it has use_rslora = ") + (rank_stabilised ? "true" : "false") +
                ", the recipe has not");
  for (const char* key : {"use_dora", "use_qalora", "lora_bias"})
    if (config.has(key) && config.at(key).boolean()) config.at(key).fail("tutti's adapters do not have this");
  if (config.has("bias") && config.at("bias").text() != "none") config.at("bias").fail("expected none");
  if (config.has("alora_invocation_tokens"))
    config.at("alora_invocation_tokens").fail("tutti's adapters act on all tokens");
  require_weights_of_base(config);
  for (const char* key : {"rank_pattern", "alpha_pattern"})
    if (config.has(key) && !config.at(key).table().empty())
      config.at(key).fail("tutti's adapters have one rank and one alpha");
}

std::string weights_in(const std::string& folder) {
  for (const char* name : {kAdapterWeights, "adapter_model.bin"})
    if (std::filesystem::exists(std::filesystem::path(folder) / name)) return folder + '/' + name;
  throw UserError({folder}, std::string("there is no ") + kAdapterWeights);
}

void read_weights(State& state, const std::string& folder) {
  const PosixDisk disk;
  const std::string file = weights_in(folder);
  const auto source = open_weights(disk, file);
  std::set<std::string> used;
  for (const ParamView& view : state.views) {
    const std::string name = kAdapterPrefix + view.name;
    if (!view.trained) continue;
    if (!source->contains(name)) {
      if (is_of_adapter(view.name))
        throw UserError({file}, "there is no '" + name + "', which the recipe's targets need");
      continue;
    }
    if (source->at(name).shape != view.shape)
      throw UserError({file}, "'" + name + "' is " + shape_text(source->at(name).shape) +
                                  ", the model's is " + shape_text(view.shape));
    source->read(name, view.region, view.tensor.detach());
    used.insert(name);
  }
  for (const auto& [name, entry] : source->entries())
    if (!used.contains(name))
      throw UserError({file}, "'" + name + "' is of no layer among the recipe's targets and modules_to_save");
}

}  // namespace

void read_adapter(State& state, const LoraOptions& options) try {
  const std::string& folder = *options.adapter;
  require_config(read_json_object(folder + '/' + kAdapterConfig), options);
  read_weights(state, folder);
} catch (const OperatingError& error) {
  throw UserError(error.what());
}

}  // namespace tutti
