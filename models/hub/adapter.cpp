#include "models/hub/adapter.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "models/hub/values.h"
#include "recipe/dotted_path.h"

namespace tutti {
namespace {

using Names = std::set<std::string>;

Names adapted_modules(const NamedShapes& tensors) {
  Names modules;
  for (const auto& [name, shape] : tensors)
    if (name.ends_with(kLoraAEnd)) modules.insert(without_end(name, kLoraAEnd));
  return modules;
}

// The ends of the modules' names, unless other matrices have such names too.
Names target_modules(const NamedShapes& tensors) {
  const Names modules = adapted_modules(tensors);
  Names ends;
  for (const std::string& module : modules) ends.insert(last_part(module));
  const bool has_others = std::ranges::any_of(tensors, [&](const auto& tensor) {
    if (!tensor.first.ends_with(kWeightEnd) || is_of_adapter(tensor.first)) return false;
    const std::string module = without_end(tensor.first, kWeightEnd);
    return !modules.contains(module) && ends.contains(last_part(module));
  });
  return has_others ? modules : ends;
}

Names modules_of(const Names& parameters) {
  Names modules;
  for (const std::string& name : parameters)
    modules.insert(name.substr(0, name.size() - last_part(name).size() - 1));
  return modules;
}

Setting::Value texts_value(const Names& texts) {
  Setting::Array items;
  for (const std::string& text : texts) items.emplace_back(text, "", Position{});
  return items;
}

// A number, as PEFT writes whole ones.
Setting::Value number_value(double value) {
  const auto whole = static_cast<int64_t>(value);
  if (static_cast<double>(whole) == value) return whole;
  return value;
}

Setting::Value text_or_null(const std::string& text) {
  if (text.empty()) return std::monostate();
  return text;
}

std::string task_of(const Setting& model) {
  const std::string& kind = model.at("kind").text();
  return kind == "gpt" || kind == "llama" ? "CAUSAL_LM" : "";
}

std::string base_of(const Setting& model) {
  if (!model.has("weights") || !std::filesystem::is_directory(model.at("weights").text())) return "";
  return model.at("weights").text();
}

}  // namespace

std::string without_end(const std::string& name, std::string_view end) {
  return name.substr(0, name.size() - end.size());
}

bool is_of_adapter(const std::string& name) { return name.ends_with(kLoraAEnd) || name.ends_with(kLoraBEnd); }

bool has_fan_in_fan_out(const NamedShapes& tensors, const Setting& model) {
  for (const std::string& module : adapted_modules(tensors)) {
    const int64_t in = tensors.at(module + kLoraAEnd).at(1), out = tensors.at(module + kLoraBEnd).at(0);
    const auto weight = tensors.find(module + kWeightEnd);
    if (in != out && weight != tensors.end()) return weight->second.at(0) == in;
  }
  return model.at("kind").text() == "gpt";
}

Setting adapter_config(const Setting& lora, const Setting& model, const NamedShapes& tensors,
                       const std::set<std::string>& saved) {
  Setting::Table config;
  add_value(config, "peft_type", std::string("LORA"));
  add_value(config, "task_type", text_or_null(task_of(model)));
  add_value(config, "base_model_name_or_path", text_or_null(base_of(model)));
  add_value(config, "r", lora.at("r").integer());
  add_value(config, "lora_alpha", number_value(lora.at("alpha").number()));
  add_value(config, "lora_dropout", lora.at("dropout").number());
  add_value(config, "target_modules", texts_value(target_modules(tensors)));
  add_value(config, "modules_to_save", saved.empty() ? Setting::Value() : texts_value(modules_of(saved)));
  add_value(config, "fan_in_fan_out", has_fan_in_fan_out(tensors, model));
  add_value(config, "use_rslora", lora.at("use_rslora").boolean());
  add_value(config, "bias", std::string("none"));
  add_value(config, "init_lora_weights", true);
  add_value(config, "inference_mode", true);
  return {std::move(config), "", {}};
}

}  // namespace tutti
