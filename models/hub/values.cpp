#include "models/hub/values.h"

#include <algorithm>
#include <utility>

#include "recipe/catalog.h"

namespace tutti {

void add_value(Setting::Table& table, const std::string& key, Setting::Value value) {
  table.emplace_back(key, Setting(std::move(value), key, {}));
}

void copy_value(Setting::Table& to, const Setting& config, const std::string& key,
                const std::string& zoo_key) {
  if (!config.has(key)) return;
  Setting value = config.at(key);
  value.path = path_below("model", zoo_key);
  value.written_path = key;
  to.emplace_back(zoo_key, std::move(value));
}

void copy_dropout(Setting::Table& section, const Setting& config, const Setting& asked, const char* key) {
  if (asked.has("dropout"))
    section.emplace_back(key, asked.at("dropout"));
  else
    copy_value(section, config, key, key);
}

void count_pad_token(Setting::Table& section) {
  const auto find = [&](const char* key) {
    return std::ranges::find(section, key, [](const auto& one) { return one.first; });
  };
  const auto token = find("pad_token_id"), vocabulary = find("vocab_size");
  if (token == section.end() || vocabulary == section.end() || token->second.integer() >= 0) return;
  token->second.value = token->second.integer() + vocabulary->second.integer();
}

void require_value(const Setting& config, const char* key, const Setting::Value& value) {
  if (!config.has(key)) return;
  const Setting& given = config.at(key);
  Setting dropout = given;
  dropout.value = value;
  const bool is_number = !given.is_text() && !given.is_table() && !given.is_array() &&
                         !std::holds_alternative<bool>(given.value);
  const bool same = is_number && !std::holds_alternative<bool>(value) && !dropout.is_text()
                        ? given.number() == dropout.number()
                        : given.toml() == dropout.toml();
  if (!same) given.fail("tutti's model has " + dropout.toml() + " alone");
}

void copy_activation(Setting::Table& to, const Setting& config) {
  if (config.has("hidden_act") && config.at("hidden_act").text() == "gelu_pytorch_tanh")
    add_value(to, "hidden_act", std::string("gelu_tanh"));
  else
    copy_value(to, config, "hidden_act", "hidden_act");
}

std::string transformers_activation(const std::string& name) {
  return name == "gelu_tanh" ? "gelu_new" : name == "swish" ? "silu" : name;
}

}  // namespace tutti
