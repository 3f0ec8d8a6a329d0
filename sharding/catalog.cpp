#include "sharding/catalog.h"

#include <bit>

namespace tutti {
namespace {

ShardingStrategy strategy_of(const std::string& name) {
  using enum ShardingStrategy;
  if (name == "optimizer") return kOptimizer;
  if (name == "gradients") return kGradients;
  if (name == "full") return kFull;
  return name == "hybrid" ? kHybrid : kNone;
}

[[noreturn]] void contradiction(const Setting& key, const Setting& strategy, const std::string& expected) {
  key.fail("contradicts " + strategy.path + " = " + strategy.toml() + " (" + strategy.position.text() +
           "); expected " + expected);
}

void require_shard_size(const Setting& section, ShardingStrategy strategy) {
  const Setting& named = section.at("strategy");
  const Setting& size = section.at("shard_size");
  const bool is_hybrid = strategy == ShardingStrategy::kHybrid;
  if (is_hybrid && size.is_none())
    named.fail("it needs sharding.shard_size, the number of ranks that share a copy, which is missing");
  if (!is_hybrid && !size.is_none()) contradiction(size, named, "strategy = \"hybrid\", or no shard_size");
  if (is_hybrid && !std::has_single_bit(static_cast<uint64_t>(size.integer())))
    size.fail("expected a power of two: 2, 4, 8, ...");
}

void require_layers(const Setting& layers) {
  for (const Setting& layer : layers.array())
    if (layer.text().empty()) layer.fail("expected a kind of layer, or a pattern of names");
}

void read_checkpointing(const Setting& key, ShardingSettings& settings) {
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

void read_offload(const Setting& key, ShardingSettings& settings) {
  if (key.is_none()) return;
  for (const Setting& what : key.array()) {
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

Catalog sharding_catalog() {
  using enum KeyType;
  return {
      .section = "sharding",
      .noun = "",
      .doc = "What ranks share out among them: each has some rows of every parameter.",
      .keys =
          {Key{"strategy", kText, "none",
               "optimizer (ZeRO-1): a rank updates its rows, and has their optimizer state only; gradients "
               "(ZeRO-2): also their gradients only; full (ZeRO-3, FSDP): also their parameters only, "
               "gathered unit by unit; hybrid: full within groups of shard_size ranks, a copy in each group"}
               .one_of({"none", "optimizer", "gradients", "full", "hybrid"})
               .also_written({{"NO_SHARD", "none"},
                              {"SHARD_GRAD_OP", "gradients"},
                              {"FULL_SHARD", "full"},
                              {"HYBRID_SHARD", "hybrid"}}),
           Key{"shard_size", kInteger, "none",
               "ranks that share a copy under hybrid: a power of two that divides the number of ranks"}
               .at_least(2)
               .at_most(65536),
           {"units", kTexts, "none",
            "layers that are each gathered at once: their kinds, or patterns of their names with *; when "
            "absent, the blocks that repeat"},
           Key{"unit_mb", kNumber, "none",
               "instead of units: the smallest layers, with all below them, that have at least so many MiB "
               "of "
               "parameters"}
               .more_than(0)
               .at_most(1e6),
           {"prefetch", kBoolean, "true", "gather a unit while the one before it computes"},
           {"reshard_after_forward", kBoolean, "true",
            "free gathered parameters after forward and gather them again for backward; false needs strategy "
            "full or hybrid"},
           Key{"activation_checkpointing", kBooleanIntegerOrTexts, "false",
               "keep the input alone of a layer until backward, which computes its activations again; true: "
               "of every unit (see units), under any strategy; n: of every n-th unit; a list: of these "
               "kinds of layers, or patterns of their names with *"}
               .at_least(1),
           {"offload", kTexts, "none",
            "what a GPU's memory does not keep, but the host's, pinned: optimizer (its state, copied there "
            "and back for each update), parameters (the rank's rows under full and hybrid, copied to be "
            "gathered, and the optimizer's state), activations (the inputs of layers with "
            "activation_checkpointing); no effect on CPUs"}},
      .alternatives = {{.keys = {"units", "unit_mb"}}}};
}

ShardingSettings ShardingSettings::read(const Setting& section) {
  ShardingSettings settings;
  const Setting& strategy = section.at("strategy");
  settings.strategy = strategy_of(strategy.text());
  require_shard_size(section, settings.strategy);
  if (section.has("units")) require_layers(section.at("units"));
  if (section.has("shard_size")) settings.shard_size = static_cast<int>(section.at("shard_size").integer());
  if (section.has("units")) settings.units = section.at("units").texts();
  if (section.has("unit_mb")) settings.unit_mb = section.at("unit_mb").number();
  read_checkpointing(section.at("activation_checkpointing"), settings);
  read_offload(section.at("offload"), settings);
  settings.prefetch = section.at("prefetch").boolean();
  const Setting& reshard = section.at("reshard_after_forward");
  settings.reshard_after_forward = reshard.boolean();
  const bool gathers = settings.strategy >= ShardingStrategy::kFull;
  if (!settings.reshard_after_forward && !gathers)
    contradiction(reshard, strategy, "true, or strategy = \"full\" or \"hybrid\"");
  return settings;
}

}  // namespace tutti
