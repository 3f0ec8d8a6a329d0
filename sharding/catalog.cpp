#include "sharding/catalog.h"

#include <bit>

namespace tutti {
namespace {

[[noreturn]] void contradiction(const Setting& key, const Setting& strategy, const std::string& expected) {
  key.fail("contradicts " + strategy.path + " = " + strategy.toml() + " (" + strategy.position.text() +
           "); expected " + expected);
}

void require_shard_size(const ShardingSettings& settings) {
  const Setting& size = settings.shard_size.key;
  const bool is_hybrid = settings.strategy == ShardingStrategy::kHybrid;
  if (is_hybrid && size.is_none())
    settings.strategy.fail(
        "it needs sharding.shard_size, the number of ranks that share a copy, which is missing");
  if (!is_hybrid && !size.is_none())
    contradiction(size, settings.strategy.key, "strategy = \"hybrid\", or no shard_size");
  if (is_hybrid && !std::has_single_bit(static_cast<uint64_t>(settings.shard_size)))
    size.fail("expected a power of two: 2, 4, 8, ...");
}

void require_layers(const Setting& layers) {
  for (const Setting& layer : layers.array())
    if (layer.text().empty()) layer.fail("expected a kind of layer, or a pattern of names");
}

void read_checkpointing(ShardingSettings& settings) {
  const Setting& key = settings.activation_checkpointing;
  if (key.is_integer()) {
    settings.checkpoint_every = key.integer();
  } else if (!key.is_array()) {
    settings.checkpoint_every = key.boolean() ? 1 : 0;
  } else {
    if (key.array().empty()) key.fail("expected kinds of layers or patterns of names, or false");
    require_layers(key);
    settings.checkpoint_layers = key.texts();
  }
}

void read_offload(ShardingSettings& settings) {
  if (settings.offload.is_none()) return;
  for (const Setting& what : settings.offload.array()) {
    if (what.text() == "optimizer")
      settings.offloads_optimizer = true;
    else if (what.text() == "activations")
      settings.offloads_activations = true;
    else if (what.text() == "parameters")
      settings.offloads_parameters = settings.offloads_optimizer = true;
    else
      what.fail("expected \"optimizer\", \"parameters\" or \"activations\"");
    if (settings.offloads_parameters && settings.strategy < ShardingStrategy::kFull)
      what.fail("it needs strategy = \"full\" or \"hybrid\", which gather parameters where they are used");
    if (settings.offloads_activations && !settings.checkpoints_activations())
      what.fail("it needs sharding.activation_checkpointing, which says of which layers");
  }
}

}  // namespace

Kind<ShardingSettings> ShardingSettings::kind() {
  using Settings = ShardingSettings;
  using enum ShardingStrategy;
  return {
      "sharding",
      "What ranks share out among them: each has some rows of every parameter.",
      {option("strategy", &Settings::strategy,
              "optimizer (ZeRO-1): a rank updates its rows, and has their optimizer state only; gradients "
              "(ZeRO-2): also their gradients only; full (ZeRO-3, FSDP): also their parameters only, "
              "gathered unit by unit; hybrid: full within groups of shard_size ranks, a copy in each group",
              {{"none", kNone},
               {"optimizer", kOptimizer},
               {"gradients", kGradients},
               {"full", kFull},
               {"hybrid", kHybrid}})
           .also_written({{"NO_SHARD", "none"},
                          {"SHARD_GRAD_OP", "gradients"},
                          {"FULL_SHARD", "full"},
                          {"HYBRID_SHARD", "hybrid"}}),
       option("shard_size", &Settings::shard_size,
              "ranks that share a copy under hybrid: a power of two that divides the number of ranks")
           .may_be_absent()
           .at_least(2)
           .at_most(65536),
       option("units", &Settings::units,
              "layers that are each gathered at once: their kinds, or patterns of their names with *; when "
              "absent, the blocks that repeat")
           .may_be_absent(),
       option("unit_mb", &Settings::unit_mb,
              "instead of units: the smallest layers, with all below them, that have at least so many MiB of "
              "parameters")
           .may_be_absent()
           .more_than(0)
           .at_most(1e6),
       option("prefetch", &Settings::prefetch, "gather a unit while the one before it computes"),
       option("reshard_after_forward", &Settings::reshard_after_forward,
              "free gathered parameters after forward and gather them again for backward; false needs "
              "strategy full or hybrid"),
       option("activation_checkpointing", &Settings::activation_checkpointing,
              "keep the input alone of a layer until backward, which computes its activations again; true: "
              "of every unit (see units), under any strategy; n: of every n-th unit; a list: of these "
              "kinds of layers, or patterns of their names with *")
           .as(KeyType::kBooleanIntegerOrTexts)
           .written("false")
           .at_least(1),
       option("offload", &Settings::offload,
              "what a GPU's memory does not keep, but the host's, pinned: optimizer (its state, copied there "
              "and back for each update), parameters (the rank's rows under full and hybrid, copied to be "
              "gathered, and the optimizer's state), activations (the inputs of layers with "
              "activation_checkpointing); no effect on CPUs")
           .as(KeyType::kTexts)}};
}

Catalog sharding_catalog() {
  Catalog catalog = section_catalog<ShardingSettings>();
  catalog.alternatives = {{.keys = {"units", "unit_mb"}}};
  return catalog;
}

ShardingSettings ShardingSettings::read(const Setting& section) {
  ShardingSettings settings = kind().read(section);
  require_shard_size(settings);
  if (!settings.units.is_absent()) require_layers(settings.units.key);
  read_checkpointing(settings);
  read_offload(settings);
  if (!settings.reshard_after_forward && settings.strategy < ShardingStrategy::kFull)
    contradiction(settings.reshard_after_forward.key, settings.strategy.key,
                  "true, or strategy = \"full\" or \"hybrid\"");
  return settings;
}

}  // namespace tutti
