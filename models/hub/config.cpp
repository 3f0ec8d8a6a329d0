#include "models/hub/config.h"

#include <algorithm>

#include "io/json/json_setting.h"
#include "models/hub/diffusers.h"
#include "models/hub/llama.h"
#include "models/hub/values.h"

namespace tutti {
namespace {

using Table = Setting::Table;

constexpr const char* kGptSizes[] = {"vocab_size", "n_positions", "n_embd", "n_layer", "n_head"};
constexpr const char* kBertKeys[] = {"vocab_size",
                                     "hidden_size",
                                     "num_hidden_layers",
                                     "num_attention_heads",
                                     "intermediate_size",
                                     "hidden_dropout_prob",
                                     "attention_probs_dropout_prob",
                                     "max_position_embeddings",
                                     "type_vocab_size",
                                     "initializer_range",
                                     "layer_norm_eps",
                                     "pad_token_id"};
// The losses of transformers' problem types.
struct Problem {
  const char *type, *loss;
};
constexpr Problem kProblems[] = {{"single_label_classification", "cross_entropy"},
                                 {"multi_label_classification", "bce_with_logits"},
                                 {"regression", "mse"}};
constexpr const char* kContrastiveKeys[] = {"pooling", "temperature", "symmetric", "simcse"};
constexpr const char* kGptDropouts[] = {"resid_pdrop", "embd_pdrop", "attn_pdrop"};
constexpr double kGptEps = 1e-5;
constexpr int64_t kGptEnd = 50256;  // the last token of GPT-2, which ends a text

Table gpt_section(const Setting& config, const Setting& asked) {
  Table section;
  add_value(section, "kind", std::string("gpt"));
  for (const char* key : kGptSizes) copy_value(section, config, key, key);
  require_value(config, "activation_function", std::string("gelu_new"));
  require_value(config, "layer_norm_epsilon", kGptEps);
  require_value(config, "scale_attn_weights", true);
  require_value(config, "scale_attn_by_inverse_layer_idx", false);
  require_value(config, "add_cross_attention", false);
  require_value(config, "tie_word_embeddings", true);
  if (config.has("n_embd")) require_value(config, "n_inner", 4 * config.at("n_embd").integer());
  if (asked.has("dropout")) {
    section.emplace_back("dropout", asked.at("dropout"));
    return section;
  }
  for (const char* key : kGptDropouts)
    if (config.has("resid_pdrop") && config.has(key) &&
        config.at(key).number() != config.at("resid_pdrop").number())
      config.at(key).fail("tutti's gpt has one dropout, and resid_pdrop = " +
                          config.at("resid_pdrop").toml() + "; model.dropout says which");
  copy_value(section, config, "resid_pdrop", "dropout");
  return section;
}

// What the model was saved as: "BertForMaskedLM".
std::string architecture_of(const Setting& config) {
  if (!config.has("architectures") || config.at("architectures").array().empty()) return "";
  return config.at("architectures").array()[0].text();
}

int64_t classes_of(const Setting& config) {
  if (config.has("num_labels")) return config.at("num_labels").integer();
  return config.has("id2label") ? static_cast<int64_t>(config.at("id2label").table().size()) : 2;
}

// As transformers, which takes a single label for a value if nobody says what it is.
std::string loss_of_problem(const Setting& config, int64_t classes) {
  if (!config.has("problem_type")) return classes == 1 ? "mse" : "";
  const Setting& type = config.at("problem_type");
  for (const Problem& problem : kProblems)
    if (type.text() == problem.type) return problem.loss;
  type.fail("expected single_label_classification, multi_label_classification or regression");
}

// The problem type of a recipe's loss; "" if transformers has none.
std::string problem_of_loss(const Setting& model) {
  if (!model.has("loss")) return "";
  const Setting& loss = model.at("loss");
  const std::string& kind = (loss.is_text() ? loss : loss.at("kind")).text();
  for (const Problem& problem : kProblems)
    if (kind == problem.loss) return problem.type;
  return "";
}

Table bert_section(const Setting& config, const Setting& asked) {
  const std::string architecture = architecture_of(config);
  const std::string head = asked.has("head") ? asked.at("head").text() : "";
  const bool classifies =
      head == "classification" || (head.empty() && architecture == "BertForSequenceClassification");
  const bool contrasts = head == "contrastive";
  Table section;
  add_value(section, "kind",
            std::string(classifies  ? "bert_classification"
                        : contrasts ? "bert_contrastive"
                                    : "bert_mlm"));
  for (const char* key : kBertKeys) copy_value(section, config, key, key);
  copy_activation(section, config);
  count_pad_token(section);
  require_value(config, "position_embedding_type", std::string("absolute"));
  require_value(config, "is_decoder", false);
  require_value(config, "add_cross_attention", false);
  if (!classifies && !contrasts) require_value(config, "tie_word_embeddings", true);
  if (asked.has("dropout"))
    for (auto& [key, value] : section)
      if (key == "hidden_dropout_prob" || key == "attention_probs_dropout_prob") value = asked.at("dropout");
  if (contrasts)
    for (const char* key : kContrastiveKeys)
      if (asked.has(key)) section.emplace_back(key, asked.at(key));
  if (!classifies) return section;
  if (asked.has("num_classes"))
    section.emplace_back("num_classes", asked.at("num_classes"));
  else
    add_value(section, "num_classes", classes_of(config));
  const int64_t classes = section.back().second.integer();
  const std::string loss = asked.has("loss") ? "" : loss_of_problem(config, classes);
  if (!loss.empty()) add_value(section, "loss", loss);
  copy_value(section, config, "classifier_dropout", "classifier_dropout");
  return section;
}

Table gpt_config(const Setting& model) {
  Table config;
  add_value(config, "architectures", Setting::Array{Setting(std::string("GPT2LMHeadModel"), "", {})});
  add_value(config, "model_type", std::string("gpt2"));
  add_value(config, "activation_function", std::string("gelu_new"));
  for (const char* key : kGptSizes) config.emplace_back(key, model.at(key));
  for (const char* key : kGptDropouts) add_value(config, key, model.at("dropout").number());
  add_value(config, "layer_norm_epsilon", kGptEps);
  add_value(config, "tie_word_embeddings", true);
  if (model.at("vocab_size").integer() > kGptEnd) return config;
  for (const char* key : {"bos_token_id", "eos_token_id"}) add_value(config, key, std::monostate());
  return config;
}

Table bert_config(const Setting& model, int64_t classes) {
  const std::string& kind = model.at("kind").text();
  const bool classifies = kind == "bert_classification";
  const std::string architecture = classifies                   ? "BertForSequenceClassification"
                                   : kind == "bert_contrastive" ? "BertModel"
                                                                : "BertForMaskedLM";
  Table config, names, numbers;
  add_value(config, "architectures", Setting::Array{Setting(architecture, "", {})});
  add_value(config, "model_type", std::string("bert"));
  for (const char* key : kBertKeys) config.emplace_back(key, model.at(key));
  add_value(config, "hidden_act", transformers_activation(model.at("hidden_act").text()));
  add_value(config, "tie_word_embeddings", true);
  if (!classifies) return config;
  for (int64_t i = 0; i < classes; ++i) {
    const std::string name = "LABEL_" + std::to_string(i);
    add_value(names, std::to_string(i), name);
    add_value(numbers, name, i);
  }
  add_value(config, "id2label", std::move(names));
  add_value(config, "label2id", std::move(numbers));
  if (const std::string type = problem_of_loss(model); !type.empty()) add_value(config, "problem_type", type);
  if (model.has("classifier_dropout"))
    config.emplace_back("classifier_dropout", model.at("classifier_dropout"));
  return config;
}

}  // namespace

Setting::Table zoo_section(const Setting& config, const Setting& asked) {
  if (is_of_diffusers(config)) return unet_section(config, asked);
  if (!config.has("model_type")) config.fail("it has no model_type, which says what model it is of");
  const Setting& type = config.at("model_type");
  if (type.text() == "gpt2") return gpt_section(config, asked);
  if (type.text() == "bert") return bert_section(config, asked);
  if (is_of_llama(type.text())) return llama_section(config, asked);
  type.fail("tutti has no such model; it has those of bert, gpt2, llama, mistral, qwen2 and qwen3");
}

void require_taken(const Setting& asked, const std::string& kind) {
  const auto refuse = [&](const char* key, const std::string& model) {
    if (asked.has(key)) asked.at(key).fail("it is of " + model + "; the folder's model is of kind " + kind);
  };
  if (!kind.starts_with("bert_")) refuse("head", "a bert");
  if (kind != "bert_classification") refuse("num_classes", "a bert with head = \"classification\"");
  if (kind == "bert_contrastive") return;
  for (const char* key : kContrastiveKeys) refuse(key, "a bert with head = \"contrastive\"");
}

HubFolder hub_folder(const Setting& model, int64_t width) {
  const Setting& kind = model.at("kind");
  const auto transformers_config = [](Table config) {
    return HubFolder{{{"config.json", Setting(std::move(config), "", {})}}, "model.safetensors"};
  };
  if (kind.text() == "gpt") return transformers_config(gpt_config(model));
  for (const char* bert : {"bert_mlm", "bert_classification", "bert_contrastive"})
    if (kind.text() == bert) return transformers_config(bert_config(model, width));
  if (kind.text() == "llama") return transformers_config(llama_config(model));
  if (kind.text() == "diffusion_unet")
    return {{{"model_index.json", Setting(pipeline_config(), "", {})},
             {"scheduler/scheduler_config.json", Setting(scheduler_config(model), "", {})},
             {"unet/config.json", Setting(unet_config(model, width), "", {})}},
            "unet/diffusion_pytorch_model.safetensors"};
  kind.fail(
      "transformers and diffusers have no such model; they have those of gpt, llama, bert_mlm, "
      "bert_classification, bert_contrastive and diffusion_unet");
}

void HubFolder::write_configs(Disk& disk, const std::string& folder) const {
  for (const auto& [path, config] : configs) {
    const std::string file = folder + '/' + path;
    disk.make_folders(file.substr(0, file.rfind('/')));
    write_json_object(disk, file, config);
  }
}

}  // namespace tutti
