#include "cli/convert/foundry.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "job/names/foundry_names.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr const char* kGptHas = "the kind gpt is GPT-2's network";

const ForeignName* name_of_foundry(const std::string& name) {
  const auto& names = foundry_names();
  const auto known = std::ranges::find_if(names, [&](const ForeignName& one) { return one.is_called(name); });
  return known == names.end() ? nullptr : &*known;
}

bool is_without_counterpart(const std::string& name) {
  const ForeignName* known = name_of_foundry(name);
  return known && known->target.empty();
}

const std::map<std::string, std::string> kSchedulers = {
    {"cosine_with_warmup", "cosine_annealing_with_warmup"},
    {"linear_decay_with_warmup", "linear_with_warmup"},
    {"constant_with_warmup", "constant_with_warmup"}};

bool is(const Setting* setting, bool value) {
  return setting && std::holds_alternative<bool>(setting->value) && setting->boolean() == value;
}

std::string text_or(const Setting* setting, const std::string& otherwise) {
  return setting && setting->is_text() ? setting->text() : otherwise;
}

// Goes through the keys of a YAML file.
class Foundry {
 public:
  explicit Foundry(const Setting& yaml) : yaml_(yaml) {
    for (const auto& [name, value] : yaml.table()) {
      const auto known = sections().find(name);
      if (value.is_none()) continue;
      if (known == sections().end())
        top(name, value);
      else
        (this->*known->second)(value);
    }
    finish();
  }
  RecipeDraft draft;

 private:
  using Section = void (Foundry::*)(const Setting&);
  static const std::map<std::string, Section>& sections() {
    static const std::map<std::string, Section> known = {{"variables", &Foundry::ignore},
                                                         {"max_seq_len", &Foundry::ignore},
                                                         {"model", &Foundry::model},
                                                         {"tokenizer", &Foundry::tokenizer},
                                                         {"train_loader", &Foundry::train_loader},
                                                         {"eval_loader", &Foundry::eval_loader},
                                                         {"optimizer", &Foundry::optimizer},
                                                         {"scheduler", &Foundry::scheduler},
                                                         {"algorithms", &Foundry::algorithms},
                                                         {"callbacks", &Foundry::callbacks},
                                                         {"loggers", &Foundry::loggers},
                                                         {"fsdp_config", &Foundry::fsdp},
                                                         {"global_train_batch_size", &Foundry::train_batch},
                                                         {"device_eval_batch_size", &Foundry::eval_batch}};
    return known;
  }

  void ignore(const Setting&) {}

  // Settings of Composer's Trainer.
  void top(const std::string& name, const Setting& value) {
    if (name == "eval_first" && is(&value, false)) return;
    if (name.starts_with("load_") && name != "load_path") return loads_.push_back({name, value});
    for (const char* section : {"", "train", "checkpoint", "data.eval", "data.train"}) {
      if (!draft.has_key(section, name)) continue;
      if (std::string(section) == "data.eval" && !yaml_.has("eval_loader")) return;
      return later_.push_back([this, section, name, value] { draft.put(section, name, value); });
    }
    draft.leave_out(value);
  }

  void train_batch(const Setting& value) {
    later_.push_back([this, value] { draft.put("data.train", "batch_size", value); });
  }
  void eval_batch(const Setting& value) {
    later_.push_back([this, value] {
      if (draft.has("data.eval", "kind")) draft.put("data.eval", "device_batch_size", value);
    });
  }

  void model(const Setting& model) {
    const std::string name = text_or(model.find("name"), "");
    if (name == "mpt_causal_lm") return mpt(model);
    if (name == "hf_causal_lm") return hub_model(model);
    draft.leave_out(model, "tutti has no model like " + name + "; give [model] one of `tutti list models`");
  }

  void mpt(const Setting& model) {
    static const std::map<std::string, std::string> names = {{"d_model", "n_embd"},
                                                             {"n_heads", "n_head"},
                                                             {"n_layers", "n_layer"},
                                                             {"max_seq_len", "n_positions"},
                                                             {"vocab_size", "vocab_size"}};
    draft.put_kind("model", "gpt", {});
    for (const auto& [name, value] : model.table()) {
      const auto known = names.find(name);
      if (known != names.end())
        draft.put("model", known->second, value);
      else if (name == "attn_config" && value.is_table())
        attention(value);
      else if (name == "peft_config" && value.is_table())
        adapters(value, /*is_of_mpt=*/true);
      else if (name.ends_with("_pdrop"))
        dropout(value);
      else if (name != "name" && !value.is_none())
        read_mpt(name, value);
    }
  }

  void read_mpt(const std::string& name, const Setting& value) {
    const bool as_gpt = (name == "expansion_ratio" && value.is_integer() && value.integer() == 4) ||
                        (name == "no_bias" && is(&value, false)) ||
                        (name == "tie_word_embeddings" && is(&value, true));
    if (as_gpt) return;
    if (name == "learned_pos_emb" && is(&value, true)) return;
    name_of_foundry(name) ? draft.leave_out(value) : draft.leave_out(value, kGptHas);
  }

  void attention(const Setting& config) {
    for (const auto& [name, value] : config.table()) {
      if (name == "attn_pdrop")
        dropout(value);
      else if (name == "alibi" && is(&value, true))
        add_alibi(value);
      else if (is_without_counterpart(name))
        draft.leave_out(value);
      else if (!value.is_none() && !is(&value, false))
        draft.leave_out(value, kGptHas);
    }
  }

  void add_alibi(const Setting& given) {
    const Setting* longest = yaml_.find("max_seq_len");
    Setting::Table options;
    if (longest) options.emplace_back("max_sequence_length", *longest);
    draft.add_table("algorithms", "alibi", Setting(std::move(options), given.path, given.position));
  }

  // LoRA. PEFT's task_type follows from the model; layers of MPT have other names than those of gpt.
  void adapters(const Setting& config, bool is_of_mpt) {
    static const std::set<std::string> done = {"peft_type", "task_type", "inference_mode"};
    if (text_or(config.find("peft_type"), "") != "LORA")
      return draft.leave_out(config, "of PEFT's methods tutti has LORA");
    Setting::Table options;
    for (const auto& [name, value] : config.table()) {
      const bool is_target = name == "target_modules";
      if (done.contains(name) || value.is_none() || (name == "bias" && text_or(&value, "") == "none"))
        continue;
      if (is_target && is_of_mpt)
        draft.leave_out(value, "the layers of gpt are c_attn, which is the default, c_proj and c_fc");
      else if (is_target && value.is_text())
        options.emplace_back(name, Setting(Setting::Array{value}, value.path, value.position));
      else
        options.emplace_back(name, value);
    }
    draft.add_table("algorithms", "lora", Setting(std::move(options), config.path, config.position));
  }

  // gpt has one for all layers.
  void dropout(const Setting& value) {
    if (!draft.has("model", "dropout")) return draft.put("model", "dropout", value);
    if (draft.recipe().at("model").at("dropout").number() != value.number())
      draft.leave_out(value, "gpt has one dropout for all layers");
  }

  void hub_model(const Setting& model) {
    const std::string name = text_or(model.find("pretrained_model_name_or_path"), "");
    if (name.empty()) return draft.leave_out(model, "it does not say which model");
    draft.put_kind("model", "hf", {});
    draft.put("model", "path", Setting::Value(name));
    draft.advice.push_back("the model's folder: huggingface-cli download " + name + " --local-dir " + name);
    static const std::set<std::string> done = {"name", "pretrained_model_name_or_path"};
    for (const auto& [key, value] : model.table()) {
      if (done.contains(key) || value.is_none() || (key == "pretrained" && is(&value, true))) continue;
      if (key == "peft_config" && value.is_table())
        adapters(value, /*is_of_mpt=*/false);
      else if (key == "pretrained")
        draft.leave_out(value,
                        "a folder with config.json and weights is read; for new weights choose a kind");
      else if (key == "config_overrides")
        draft.leave_out(value, "edit config.json in the folder");
      else
        draft.leave_out(value);
    }
  }

  void tokenizer(const Setting& given) {
    tokenizer_ = text_or(given.find("name"), "");
    const Setting* options = given.find("kwargs");
    if (options && options->is_table())
      for (const auto& [name, value] : options->table())
        if (name != "model_max_length" && !value.is_none())
          draft.leave_out(value, "tokenizer.json and tokenizer_config.json say it");
  }

  void train_loader(const Setting& given) { loader("data.train", given); }
  void eval_loader(const Setting& given) {
    if (!given.is_array()) return loader("data.eval", given);
    for (std::size_t i = 0; i < given.array().size(); ++i)
      i == 0 ? loader("data.eval", given.array()[i])
             : draft.leave_out(given.array()[i], "write one of [[evaluators]] for each further one");
  }

  void loader(const std::string& section, const Setting& given) {
    const Setting* dataset = given.find("dataset");
    if (!dataset || !dataset->is_table()) return draft.leave_out(given, "it has no dataset");
    later_.push_back([this, section, given, dataset = *dataset] {
      text_or(given.find("name"), "") == "finetuning" ? prompts(section, dataset) : shards(section, dataset);
      for (const auto& [name, value] : given.table()) {
        if (name == "name" || name == "dataset" || value.is_none()) continue;
        is_without_counterpart(name) ? draft.leave_out(value) : draft.put(section, name, value);
      }
    });
  }

  // The rest of a dataset, once its own keys are done.
  void others(const std::string& section, const Setting& dataset, const std::set<std::string>& done) {
    for (const auto& [name, value] : dataset.table()) {
      if (done.contains(name) || value.is_none()) continue;
      is_without_counterpart(name) ? draft.leave_out(value) : draft.put(section, name, value);
    }
  }

  static std::string joined_path(const std::string& folder, const Setting* split) {
    return split && split->is_text() ? folder + '/' + split->text() : folder;
  }

  // Shards of MosaicML Streaming, as scripts/data_prep writes them: tokens of samples of equal length.
  void shards(const std::string& section, const Setting& dataset) {
    const Setting* from = &dataset;
    if (const Setting* streams = dataset.find("streams"); streams && streams->is_table()) {
      from = &streams->table().front().second;
      if (streams->table().size() > 1)
        draft.leave_out(*streams, "the first one is taken; kind = \"mixture\" has several");
    }
    const Setting* split = from->find("split") ? from->find("split") : dataset.find("split");
    draft.put_kind(section, "mds", {});
    draft.put(section, "path", Setting::Value(joined_path(text_or(from->find("local"), "data"), split)));
    if (const std::string remote = text_or(from->find("remote"), ""); !remote.empty()) {
      draft.put(section, "remote", Setting::Value(joined_path(remote, split)));
      draft.put(section, "fetch", Setting::Value("aws s3 cp {source} {target}"));
      draft.advice.push_back('[' + section + "] fetch: the command that copies a file of the remote");
    }
    const Setting tokens(std::string("tokens"), section + ".columns", {});
    draft.put(section, "columns", Setting::Table{{"input", tokens}, {"target", tokens}});
    if (const Setting* model = yaml_.find("model"); model && model->is_table() && model->has("vocab_size"))
      draft.put(section, "num_classes", model->at("vocab_size"));
    draft.put(
        section, "transforms",
        Setting::Array{Setting(Setting::Table{{"kind", Setting("next_token", section, {})}}, section, {})});
    others(section, dataset, {"local", "remote", "split", "streams"});
  }

  // Pairs of a prompt and a response.
  void prompts(const std::string& section, const Setting& dataset) {
    if (dataset.find("local") || dataset.find("streams"))
      return draft.leave_out(dataset, "pairs are read from JSON lines; write the shards out as such");
    draft.put_kind(section, "text", {});
    draft.put(section, "path", Setting::Value(pairs_path(dataset)));
    draft.put(section, "tokenizer", Setting::Value(tokenizer_));
    draft.put(section, "prompt_field", Setting::Value("prompt"));
    draft.put(section, "response_field", Setting::Value("response"));
    draft.put(section, "packing", Setting::Value("first_fit"));
    if (const Setting* longest = dataset.find("max_seq_len")) draft.put(section, "sequence_length", *longest);
    if (const Setting* given = dataset.find("preprocessing_fn"); given && !given->is_none())
      draft.leave_out(*given, "write lines with prompt and response, as the function gives them");
    if (const Setting* format = dataset.find("decoder_only_format"); is(format, false))
      draft.leave_out(*format);
    if (const Setting* ratio = dataset.find("packing_ratio"); ratio && !ratio->is_none())
      draft.leave_out(*ratio, "as many documents as fit are packed into a sample");
    else
      draft.leave_out(dataset,
                      "llm-foundry pads each document to a sample of its own; here as many as fit are "
                      "packed into one, so an epoch has fewer steps: lower batch_size to have more");
    others(section, dataset,
           {"hf_name", "hf_kwargs", "split", "max_seq_len", "preprocessing_fn", "decoder_only_format",
            "packing_ratio", "safe_load"});
  }

  std::string pairs_path(const Setting& dataset) {
    const std::string name = text_or(dataset.find("hf_name"), "data");
    const std::string split = text_or(dataset.find("split"), "train");
    const Setting* options = dataset.find("hf_kwargs");
    const bool is_json = name == "json" && options && options->is_table();
    const std::string folder = is_json ? text_or(options->find("data_dir"), "data") : name;
    const std::string path = folder + '/' + split + ".jsonl";
    if (is_json)
      draft.advice.push_back(path + ": JSON lines with the members prompt and response");
    else
      draft.advice.push_back(path + ": in Python, datasets.load_dataset(\"" + name + "\", split=\"" + split +
                             "\").to_json(\"" + path + "\")");
    return path;
  }

  void optimizer(const Setting& given) { kind_of("optimizer", given, text_or(given.find("name"), "")); }

  void scheduler(const Setting& given) {
    const std::string name = text_or(given.find("name"), "");
    const auto known = kSchedulers.find(name);
    kind_of("scheduler", given, known == kSchedulers.end() ? name : known->second);
  }

  void kind_of(const std::string& section, const Setting& given, const std::string& kind) {
    if (!draft.has_kind(section, kind))
      return draft.leave_out(given, "there is no " + section + " called " + kind);
    draft.put_kind(section, kind, given);
  }

  void tables(const std::string& section, const Setting& given) {
    if (!given.is_table()) return draft.leave_out(given);
    for (const auto& [name, options] : given.table()) draft.add_table(section, name, options);
  }
  void algorithms(const Setting& given) { tables("algorithms", given); }
  void callbacks(const Setting& given) { tables("callbacks", given); }
  void loggers(const Setting& given) { tables("loggers", given); }

  void fsdp(const Setting& given) {
    if (!given.is_table()) return draft.leave_out(given);
    for (const auto& [name, value] : given.table()) {
      if (name == "sharding_strategy")
        draft.put("sharding", "strategy", value);
      else if (name == "mixed_precision")
        mixed_precision(value);
      else if (name == "activation_cpu_offload")
        activation_offload(value);
      else if (draft.has_key("sharding", name))
        draft.put("sharding", name, value);
      else if (!value.is_none() && !is(&value, false))
        draft.leave_out(value);
    }
  }

  // FSDP's presets: what tutti does anyway is DEFAULT.
  void mixed_precision(const Setting& value) {
    const std::string preset = text_or(&value, "");
    if (preset == "PURE") return draft.put("precision", "reduce_dtype", Setting::Value("bf16"));
    if (preset != "DEFAULT")
      draft.leave_out(value, "see [precision]: param_dtype, reduce_dtype, buffer_dtype");
  }

  void activation_offload(const Setting& value) {
    if (!is(&value, true)) return;
    draft.put("sharding", "offload",
              Setting::Array{Setting("activations", "sharding.offload", value.position)});
  }

  void finish() {
    for (const auto& action : later_) action();
    for (const auto& [name, value] : loads_)
      draft.has("checkpoint", "resume") ? draft.put("checkpoint", name, value)
                                        : draft.leave_out(value, "there is no load_path");
    if (!tokenizer_.empty() && draft.has("data.train", "tokenizer"))
      draft.advice.push_back("the tokenizer: " + tokenizer_ +
                             "/tokenizer.json, as downloaded with the model");
  }

  const Setting& yaml_;
  std::string tokenizer_;
  std::vector<std::function<void()>> later_;            // after the kinds of their sections
  std::vector<std::pair<std::string, Setting>> loads_;  // options of load_path
};

}  // namespace

RecipeDraft recipe_of_foundry(const Setting& yaml) {
  const Setting* parameters = yaml.find("parameters");  // of a run on MosaicML's platform
  const Setting& root = parameters && parameters->is_table() ? *parameters : yaml;
  if (!root.find("model") && !root.find("train_loader") && !root.find("optimizer"))
    throw UserError({yaml.position.file}, "no YAML that llm-foundry trains by: it has no model and no data");
  return std::move(Foundry(root).draft);
}

}  // namespace tutti
