#include "job/names/deepspeed.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "data/data_settings.h"
#include "recipe/resolve.h"
#include "sharding/catalog.h"
#include "training/settings.h"

namespace tutti {
namespace {

using enum KeyType;

constexpr const char* kSection = "deepspeed";
constexpr const char* kAlgorithms = "algorithms";
constexpr const char* kZero = "zero_optimization";
constexpr const char* kActivations = "activation_checkpointing";
constexpr int64_t kUsualScalePower = 16;
constexpr int64_t kMaxZeroStage = 3;
constexpr double kBytesPerMib = int64_t{1} << 20;

// Keys that stand for something elsewhere in a recipe, or for nothing.
std::vector<Key> keys_elsewhere(std::initializer_list<std::pair<const char*, const char*>> all) {
  std::vector<Key> keys;
  for (const auto& [name, where] : all) keys.push_back(Key{name, kAny, "none", ""}.not_carried_over(where));
  return keys;
}

std::vector<Key> operator+(std::vector<Key> keys, std::vector<Key> more) {
  std::ranges::move(more, std::back_inserter(keys));
  return keys;
}

std::vector<Key> keys_of_fp16_elsewhere() {
  constexpr const char* kOneByOne = "a scale is halved at the first overflow, as torch's GradScaler does";
  return keys_elsewhere({{"loss_scale_window", "[precision] growth_interval"},
                         {"hysteresis", kOneByOne},
                         {"consecutive_hysteresis", kOneByOne},
                         {"min_loss_scale", "a scale has no lower bound"},
                         {"auto_cast", "inputs are cast where a layer computes in 16 bits"},
                         {"fp16_master_weights_and_grads", "weights are float32"}});
}

std::vector<Key> keys_of_runs_elsewhere() {
  constexpr const char* kProfiler = "[profiler] says where the time of a step goes";
  constexpr const char* kLoggers = "[[loggers]]";
  constexpr const char* kCompute = "the reduction has the dtype of [precision] reduce_dtype";
  return keys_elsewhere(
      {{"optimizer", "[optimizer] kind, lr, ..."},
       {"scheduler", "[scheduler] kind, t_warmup, ..."},
       {"zero_allow_untested_optimizer", "every optimizer may be sharded"},
       {"zero_force_ds_cpu_optimizer", "[sharding] offload keeps the optimizer's state on the host"},
       {"communication_data_type", kCompute},
       {"prescale_gradients", "gradients are weighted by the samples behind them"},
       {"gradient_predivide_factor", "gradients are weighted by the samples behind them"},
       {"sparse_gradients", "gradients of embeddings are dense"},
       {"wall_clock_breakdown", "tutti timeline RUN and tutti report RUN, from the journal"},
       {"memory_breakdown", "the callback memory_monitor"},
       {"flops_profiler", kProfiler},
       {"comms_logger", kProfiler},
       {"dump_state", "tutti inspect RUN"},
       {"amp", "[train] precision = \"amp_fp16\""},
       {"data_types", "[train] precision and [precision] of the recipe"},
       {"tensorboard", kLoggers},
       {"wandb", kLoggers},
       {"csv_monitor", kLoggers},
       {"comet", kLoggers},
       {"checkpoint", "[checkpoint]"},
       {"autotuning", "[train] grad_accum = \"auto\" finds the microbatch"},
       {"elasticity", "a run resumes on another number of ranks with --resume auto"},
       {"curriculum_learning", "[[algorithms]] kind = \"seq_length_warmup\""},
       {"data_efficiency", "[[algorithms]] kind = \"seq_length_warmup\""},
       {"aio", "nothing is offloaded to a disk"},
       {"sparse_attention", "attention is dense"},
       {"compression_training", "nothing is compressed"},
       {"tensor_parallel", "ranks share parameters by [sharding]"},
       {"pipeline", "ranks share parameters by [sharding]"}});
}

Catalog fp16_catalog() {
  return {.section = "deepspeed.fp16",
          .noun = "",
          .doc = "",
          .keys =
              std::vector<Key>{
                  {"enabled", kBoolean, "false", "train.precision = \"amp_fp16\""},
                  Key{"loss_scale", kNumber, "0", "of losses; 0: it finds itself"}.at_least(0).at_most(1e30),
                  Key{"initial_scale_power", kInteger, "16", "it begins at 2 to the power of this"}
                      .at_least(0)
                      .at_most(64)} +
              keys_of_fp16_elsewhere()};
}

Catalog bf16_catalog() {
  return {.section = "deepspeed.bf16",
          .noun = "",
          .doc = "",
          .keys = {{"enabled", kBoolean, "false", "train.precision = \"amp_bf16\""}}};
}

Catalog zero_catalog() {
  const auto always = [](const char* name) {
    return Key{name, kBoolean, "none", "tutti always does"}.one_of({"true"});
  };
  const auto refused = [](const char* name, const char* why) {
    return Key{name, kAny, "none", ""}.not_carried_over(why);
  };
  const char* units = "what is gathered together are the layers of [sharding] units or unit_mb";
  const auto offloads = [](const char* name, const std::string& what) {
    return Key{name, kAny, "none", "sharding.offload = [\"" + what + "\"], if its device is cpu"};
  };
  return {
      .section = "deepspeed.zero_optimization",
      .noun = "",
      .doc = "",
      .keys = {Key{"stage", kInteger, "none", "sharding.strategy: none, optimizer, gradients, full"}
                   .at_least(0)
                   .at_most(kMaxZeroStage),
               Key{"reduce_bucket_size", kNumber, "none", "collectives.bucket_mb, in numbers instead of MiB"}
                   .at_least(1)
                   .at_most(1e11),
               always("overlap_comm"), always("contiguous_gradients"), always("reduce_scatter"),
               refused("allgather_bucket_size", units), refused("stage3_prefetch_bucket_size", units),
               refused("stage3_max_live_parameters", units), refused("stage3_max_reuse_distance", units),
               refused("stage3_param_persistence_threshold", units), refused("sub_group_size", units),
               offloads("offload_optimizer", "optimizer"), offloads("offload_param", "parameters"),
               refused("cpu_offload", "an old name of offload_optimizer"),
               refused("zero_hpz_partition_size", "[sharding] strategy = \"hybrid\" has shard_size")}};
}

Catalog activations_catalog() {
  const auto never = [](const char* name) {
    return Key{name, kBoolean, "false", "tutti never does"}.one_of({"false"});
  };
  return {.section = "deepspeed.activation_checkpointing",
          .noun = "",
          .doc = "",
          .keys = {never("partition_activations"),
                   Key{"cpu_checkpointing", kBoolean, "false", "sharding.offload = [\"activations\"]"},
                   never("contiguous_memory_optimization"), never("synchronize_checkpoint_boundary"),
                   never("profile"),
                   Key{"number_checkpoints", kAny, "none", ""}.not_carried_over(
                       "every unit has a checkpoint; [sharding] activation_checkpointing = n gives every "
                       "n-th unit one")}};
}

// The main name of a choice: "amp_fp16" for "amp".
std::string choice_named(const std::string& section, const std::string& key, const std::string& text) {
  for (const Catalog& catalog : {train_catalog(), sharding_catalog()})
    for (const Key& known : catalog.keys)
      if (catalog.section == section && known.name == key) return known.choice_named(text);
  return text;
}

// Translates [deepspeed] key by key.
class Translation {
 public:
  explicit Translation(const Setting& written)
      : recipe_(written), section_(resolve_section(deepspeed_catalog(), *written.find(kSection), {})) {}

  Setting recipe() {
    batch();
    accumulation();
    precision();
    zero();
    activations();
    offload();
    clipping();
    if (const Setting* steps = given("steps_per_print"))
      put("train", "progress_interval", *steps, std::to_string(steps->integer()) + "ba");
    return std::move(recipe_);
  }

 private:
  const Setting* given(const char* key) const { return section_.has(key) ? &section_.at(key) : nullptr; }

  // The recipe's own value; null if none.
  const Setting* own_value(const std::string& section, const std::string& key) const {
    const Setting* at = &recipe_;
    std::istringstream names(section + "." + key);
    for (std::string name; at && std::getline(names, name, '.');)
      at = at->is_table() ? at->find(name) : nullptr;
    return at && !at->is_none() ? at : nullptr;
  }

  static bool same(const Setting& first, const Setting& second) {
    const auto is_number = [](const Setting& setting) {
      return setting.is_integer() || std::holds_alternative<double>(setting.value);
    };
    if (is_number(first) && is_number(second)) return first.number() == second.number();
    return first.toml() == second.toml();
  }

  [[noreturn]] static void contradiction(const Setting& cause, const Setting& other) {
    cause.fail(other.path + " = " + other.toml() + " (" + other.position.text() +
               ") says otherwise; keep one of the two");
  }

  Setting& table(const std::string& section, const Position& position) {
    Setting* at = &recipe_;
    std::string path;
    std::istringstream names(section);
    for (std::string name; std::getline(names, name, '.');) {
      path += (path.empty() ? "" : ".") + name;
      if (!at->find(name)) at->table().emplace_back(name, Setting(Setting::Table{}, path, position));
      at = at->find(name);
    }
    return *at;
  }

  // Adds the value that `cause` asks for.
  void put(const std::string& section, const std::string& key, const Setting& cause, Setting::Value value) {
    Setting translated(std::move(value), section + "." + key, cause.position);
    const Setting* other = own_value(section, key);
    if (other && !same(with_choice(section, key, *other), translated)) contradiction(cause, *other);
    if (!other) table(section, cause.position).table().emplace_back(key, std::move(translated));
  }

  static Setting with_choice(const std::string& section, const std::string& key, Setting value) {
    if (value.is_text()) value.value = choice_named(section, key, value.text());
    return value;
  }

  void batch() {
    const Setting* whole = given("train_batch_size");
    const Setting* micro = given("train_micro_batch_size_per_gpu");
    const Setting* steps = given("gradient_accumulation_steps");
    const bool device_holds = own_value("data.train", "device_batch_size");
    if (whole && !device_holds) put("data.train", "batch_size", *whole, whole->integer());
    if (whole || !micro || own_value("data.train", "batch_size")) return;
    if (!steps && device_holds) return;
    const Setting* count = steps ? steps : own_value("train", "grad_accum");
    const int64_t parts = count && count->is_integer() ? count->integer() : 1;
    put("data.train", "device_batch_size", *micro, micro->integer() * parts);
  }

  void accumulation() {
    const Setting* micro = given("train_micro_batch_size_per_gpu");
    const Setting* steps = given("gradient_accumulation_steps");
    const Setting* size = own_value("train", "device_train_microbatch_size");
    if (steps && !size) put("train", "grad_accum", *steps, steps->integer());
    const Setting* parts = own_value("train", "grad_accum");
    if (micro && parts && !parts->is_integer()) contradiction(*micro, *parts);
    if (micro && !parts) put("train", "device_train_microbatch_size", *micro, micro->integer());
  }

  void precision() {
    const Setting fp16 = table_of("fp16", fp16_catalog()), bf16 = table_of("bf16", bf16_catalog());
    require_enabled(fp16);
    const bool is_fp16 = !fp16.is_none() && fp16.at("enabled").boolean();
    const bool is_bf16 = !bf16.is_none() && bf16.at("enabled").boolean();
    if (is_fp16 && is_bf16) contradiction(fp16.at("enabled"), bf16.at("enabled"));
    if (is_fp16) put("train", "precision", fp16.at("enabled"), std::string("amp_fp16"));
    if (is_bf16) put("train", "precision", bf16.at("enabled"), std::string("amp_bf16"));
    if (is_fp16) scale(fp16);
    require_off(fp16, "amp_fp16");
    require_off(bf16, "amp_bf16");
  }

  Setting table_of(const char* key, const Catalog& catalog) const {
    const Setting* written = given(key);
    return written ? resolve_section(catalog, *written, {}) : Setting();
  }

  // A scale without `enabled` would have no effect. Beside `enabled = false` this is intended.
  void require_enabled(const Setting& fp16) const {
    if (fp16.is_none() || given("fp16")->find("enabled")) return;
    for (const char* key : {"loss_scale", "initial_scale_power"})
      if (given("fp16")->find(key))
        fp16.at(key).fail(
            "fp16 is not enabled, so this has no effect; say enabled = true beside it, or false");
  }

  // `enabled = false` may contradict [train] precision.
  void require_off(const Setting& half, const char* precision) const {
    if (half.is_none() || half.at("enabled").boolean()) return;
    const Setting* own = own_value("train", "precision");
    if (own && own->is_text() && choice_named("train", "precision", own->text()) == precision)
      contradiction(half.at("enabled"), *own);
  }

  void scale(const Setting& fp16) {
    const Setting& fixed = fp16.at("loss_scale");
    const Setting& power = fp16.at("initial_scale_power");
    if (fixed.number() > 0) {
      put("precision", "init_scale", fixed, fixed.number());
      put("precision", "growth_factor", fixed, 1.0);
      put("precision", "backoff_factor", fixed, 1.0);
    } else if (given("fp16")->find("initial_scale_power") || power.integer() != kUsualScalePower) {
      put("precision", "init_scale", power, std::ldexp(1.0, static_cast<int>(power.integer())));
    }
  }

  void zero() {
    const Setting zero = table_of(kZero, zero_catalog());
    if (zero.is_none()) return;
    if (zero.has("stage")) {
      const char* strategies[kMaxZeroStage + 1] = {"none", "optimizer", "gradients", "full"};
      const Setting& stage = zero.at("stage");
      put("sharding", "strategy", stage, std::string(strategies[stage.integer()]));
      const Setting* size = own_value("sharding", "shard_size");
      if (size && own_value("sharding", "strategy")->text() != "hybrid") contradiction(stage, *size);
      const Setting* reshard = own_value("sharding", "reshard_after_forward");
      const bool* frees = reshard ? std::get_if<bool>(&reshard->value) : nullptr;
      if (frees && !*frees && stage.integer() < kMaxZeroStage) contradiction(stage, *reshard);
    }
    if (!zero.has("reduce_bucket_size")) return;
    const Setting& size = zero.at("reduce_bucket_size");
    put("collectives", "bucket_mb", size, size.number() * bytes_of_gradient() / kBytesPerMib);
  }

  // The recipe's own layers or number of units are no contradiction.
  void activations() {
    if (table_of(kActivations, activations_catalog()).is_none()) return;
    const Setting* own = own_value("sharding", kActivations);
    if (!own || std::holds_alternative<bool>(own->value))
      put("sharding", kActivations, *given(kActivations), true);
  }

  void offload() {
    const Setting zero = table_of(kZero, zero_catalog());
    const Setting activations = table_of(kActivations, activations_catalog());
    Setting::Array whats;
    const Setting* cause = nullptr;
    const auto add = [&](const Setting& key, const char* what) {
      cause = &key;
      whats.emplace_back(std::string(what), "sharding.offload", key.position);
    };
    for (const auto& [key, what] :
         {std::pair("offload_optimizer", "optimizer"), {"offload_param", "parameters"}})
      if (!zero.is_none() && zero.has(key) && is_to_cpu(zero.at(key))) add(zero.at(key), what);
    if (!activations.is_none() && activations.at("cpu_checkpointing").boolean())
      add(activations.at("cpu_checkpointing"), "activations");
    if (cause) put("sharding", "offload", *cause, whats);
  }

  static bool is_to_cpu(const Setting& offload) {
    const Setting* device = offload.is_table() ? offload.find("device") : nullptr;
    if (!device || !device->is_text()) offload.fail("expected {device = \"cpu\"}");
    if (device->text() != "cpu" && device->text() != "none")
      device->fail("tutti offloads to the memory of the host only: expected \"cpu\" or \"none\"");
    for (const auto& [key, value] : offload.table())
      if (key == "ratio" || key == "max_in_cpu") value.fail("not carried over: all of it is offloaded");
    return device->text() == "cpu";
  }

  // Bytes of a number in sums over ranks.
  double bytes_of_gradient() const {
    const Setting* reduced = own_value("precision", "reduce_dtype");
    const Setting* dtype = reduced ? reduced : own_value("precision", "param_dtype");
    return dtype && dtype->is_text() && dtype->text() == "bf16" ? 2 : 4;
  }

  void clipping() {
    const Setting* most = given("gradient_clipping");
    if (!most) return;
    if (most->number() == 0) return require_no_clipping(*most);
    if (!recipe_.find(kAlgorithms))
      recipe_.table().emplace_back(kAlgorithms, Setting(Setting::Array{}, kAlgorithms, most->position));
    auto* algorithms = std::get_if<Setting::Array>(&recipe_.find(kAlgorithms)->value);
    if (!algorithms) return;  // resolving the recipe gives the error
    const std::string path = std::string(kAlgorithms) + "." + std::to_string(algorithms->size());
    Setting translated(Setting::Table{}, path, most->position);
    const auto add = [&](const char* key, Setting::Value value) {
      translated.table().emplace_back(key, Setting(std::move(value), path + "." + key, most->position));
    };
    add("kind", std::string("gradient_clipping"));
    add("clipping_type", std::string("norm"));
    add("clipping_threshold", most->number());
    for (const Setting& algorithm : *algorithms)
      if (is_like(algorithm, translated, "kind")) return require_same(*most, algorithm, translated);
    algorithms->push_back(std::move(translated));
  }

  // `0` contradicts the algorithm gradient_clipping.
  void require_no_clipping(const Setting& none) const {
    const Setting* algorithms = recipe_.find(kAlgorithms);
    if (!algorithms || !algorithms->is_array()) return;
    for (const Setting& algorithm : algorithms->array())
      if (const Setting* kind = algorithm.is_table() ? algorithm.find("kind") : nullptr)
        if (kind->toml() == "\"gradient_clipping\"") contradiction(none, *kind);
  }

  static bool is_like(const Setting& first, const Setting& second, const char* key) {
    const Setting* value = first.is_table() ? first.find(key) : nullptr;
    return value && same(*value, second.at(key));
  }

  static void require_same(const Setting& cause, const Setting& given, const Setting& translated) {
    for (const char* key : {"clipping_type", "clipping_threshold"})
      if (given.find(key) && !is_like(given, translated, key)) contradiction(cause, given.at(key));
  }

  Setting recipe_, section_;
};

}  // namespace

Catalog deepspeed_catalog() {
  const auto count = [](const char* name, const char* doc) {
    return Key{name, kInteger, "none", doc}.at_least(1).at_most(kMaxBatchSamples);
  };
  return {
      .section = kSection,
      .noun = "",
      .doc =
          "A configuration of DeepSpeed's, put into the keys that it stands for; what it leaves out is what "
          "they say, and the section may be empty. batch = micro batch x accumulation x ranks.",
      .keys =
          std::vector<Key>{
              count("train_batch_size", "data.train.batch_size"),
              count("train_micro_batch_size_per_gpu", "train.device_train_microbatch_size"),
              count("gradient_accumulation_steps", "train.grad_accum"),
              {"fp16", kAny, "none",
               "{enabled, loss_scale, initial_scale_power}: train.precision = \"amp_fp16\" and [precision]"},
              {"bf16", kAny, "none", "{enabled}: train.precision = \"amp_bf16\""},
              Key{"gradient_clipping", kNumber, "none",
                  "the algorithm gradient_clipping of this norm; 0: none"}
                  .at_least(0),
              {kZero, kAny, "none",
               "{stage, reduce_bucket_size, offload_optimizer, offload_param}: sharding.strategy, "
               "collectives.bucket_mb and sharding.offload"},
              {kActivations, kAny, "none", "a table, or {}: sharding.activation_checkpointing = true"},
              count("steps_per_print", "train.progress_interval, in steps")} +
          keys_of_runs_elsewhere(),
      .default_kind = "none"};
}

Setting with_deepspeed(const Setting& written) {
  const Setting* section = written.is_table() ? written.find(kSection) : nullptr;
  return section && !section->is_none() ? Translation(written).recipe() : written;
}

void require_deepspeed_rule(const Setting& recipe, int64_t global_batch, int world) {
  const Setting& section = recipe.at(kSection);
  if (section.is_none()) return;
  for (const char* key :
       {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"})
    if (section.has(key) && global_batch % world != 0)
      section.at(key).fail("the batch, " + std::to_string(global_batch) + " samples, is no multiple of the " +
                           "number of ranks, " + std::to_string(world));
  const int64_t device_batch = global_batch / world;
  const auto text = [](int64_t number) { return std::to_string(number); };
  const std::string device = text(device_batch) + " samples on each of " + text(world) + " ranks";
  if (section.has("train_batch_size") && section.at("train_batch_size").integer() != device_batch * world)
    section.at("train_batch_size").fail("data.train.device_batch_size says " + device);
  const Setting parts = TrainSettings::kind().read(recipe.at("train")).accumulation.key;
  if (section.has("train_micro_batch_size_per_gpu")) {
    const Setting& micro = section.at("train_micro_batch_size_per_gpu");
    const int64_t step_samples = micro.integer() * (parts.is_integer() ? parts.integer() : 1);
    if (parts.is_integer() ? step_samples != device_batch : device_batch % step_samples != 0)
      micro.fail("micro batch x accumulation x ranks must be the batch, which is " + device +
                 (parts.is_integer() ? "; accumulation is train.grad_accum = " + parts.toml() : ""));
  } else if (section.has("gradient_accumulation_steps")) {
    const Setting& steps = section.at("gradient_accumulation_steps");
    const Setting& size = recipe.at("train").at("device_train_microbatch_size");
    if (device_batch % steps.integer() != 0)
      steps.fail("expected a divisor of the batch, which is " + device);
    if (!size.is_none() && size.integer() * steps.integer() != device_batch)
      steps.fail(size.path + " = " + size.toml() + " (" + size.position.text() +
                 ") says otherwise of a batch of " + device);
  }
}

std::string deepspeed_advice(const Setting& recipe) {
  const Setting& section = recipe.at(kSection);
  const Setting* zero = section.is_none() ? nullptr : section.find(kZero);
  const Setting* size = zero && zero->is_table() ? zero->find("reduce_bucket_size") : nullptr;
  const std::string strategy = ShardingSettings::kind().read(recipe.at("sharding")).strategy.key.text();
  if (!size || strategy == "none" || strategy == "optimizer") return {};
  return size->position.text() + ": " + size->path + " = " + size->toml() +
         ": has no effect with sharding.strategy = \"" + strategy +
         "\", which sums the gradients of a unit at once; sharding.units or unit_mb says what a unit is";
}

}  // namespace tutti
