#include "job/names/fsdp_names.h"

#include <string>

namespace tutti {
namespace {

constexpr const char* kActivationText =
    "true: of every unit; also every n-th unit, or layers by kind or name, under any strategy";
constexpr const char* kTransformerEngine =
    "not carried over: of NVIDIA's Transformer Engine, which needs a GPU";
constexpr const char* kOneAhead = "not carried over: one unit is gathered ahead of the one that computes";
constexpr const char* kSharded =
    "not carried over: each rank writes its own rows, and reads its own from a checkpoint of any number of "
    "ranks and any strategy";
constexpr const char* kReads =
    "not carried over: each rank reads the rows that it needs, and no rank reads all";
constexpr const char* kSameValues =
    "not carried over: initial values are a function of the seed and the parameter's name, the same on all "
    "ranks";
constexpr const char* kLog = "not carried over: each rank's log file has every line";
constexpr const char* kDtypes = "param_dtype, reduce_dtype and buffer_dtype, each set apart";
constexpr const char* kMesh = "ranks that share a copy; there are as many copies as ranks / shard_size";

// Keys that FSDPConfig and FSDP2Config have in common.
std::vector<ComposerName> of_both(const std::string& config) {
  return {
      {config + ".activation_checkpointing", "[sharding] activation_checkpointing", kActivationText},
      {config + ".activation_cpu_offload", "[sharding] offload",
       "\"activations\", with activation_checkpointing"},
      {config + ".device_mesh", "[sharding] shard_size", kMesh},
      {config + ".load_monolith_rank0_only", "", kReads},
      {config + ".mixed_precision", "[precision]", kDtypes},
      {config + ".state_dict_type", "", kSharded},
      {config + ".sync_module_states", "", kSameValues},
      {config + ".verbose", "", kLog},
  };
}

std::vector<ComposerName> of_fsdp() {
  return {
      {"FSDPConfig.activation_checkpointing_reentrant", "",
       "not carried over: checkpointing is never reentrant; gradients have the bits of training without it"},
      {"FSDPConfig.auto_wrap", "[sharding] units",
       "blocks that repeat are units without a word; there is no function that wraps"},
      {"FSDPConfig.te_checkpoint_wrapper", "", kTransformerEngine},
      {"FSDPConfig.te_shard_fp8_weight", "", kTransformerEngine},
      {"FSDPConfig.backward_prefetch", "[sharding] prefetch",
       "true: a unit is gathered before the gradients of the one before it are computed, as BACKWARD_PRE"},
      {"FSDPConfig.backward_prefetch_limit", "", kOneAhead},
      {"FSDPConfig.cpu_offload", "[sharding] offload",
       "\"parameters\", with the optimizer's state; gradients stay in the GPU's memory"},
      {"FSDPConfig.data_parallel_shard_degree", "[sharding] shard_size",
       "under hybrid; under full it is the number of ranks"},
      {"FSDPConfig.data_parallel_replicate_degree", "[sharding] shard_size", kMesh},
      {"FSDPConfig.forward_prefetch", "[sharding] prefetch"},
      {"FSDPConfig.forward_prefetch_limit", "", kOneAhead},
      {"FSDPConfig.ignored_modules", "",
       "not carried over: every parameter is cut by rows; ranks without a row of a small one have none of "
       "it"},
      {"FSDPConfig.keep_low_precision_grads", "",
       "not carried over: the optimizer has gradients in the dtype of the parameters; sums over ranks have "
       "that of [precision] reduce_dtype"},
      {"FSDPConfig.limit_all_gathers", "", kOneAhead},
      {"FSDPConfig.load_planner", "", kSharded},
      {"FSDPConfig.save_planner", "", kSharded},
      {"FSDPConfig.process_group", "",
       "not carried over: the groups follow from [sharding] strategy and shard_size"},
      {"FSDPConfig.sharded_ckpt_prefix_dir", "[checkpoint] save_filename"},
      {"FSDPConfig.sharding_strategy", "[sharding] strategy",
       "FSDP's own words may stand there: FULL_SHARD, SHARD_GRAD_OP, HYBRID_SHARD, NO_SHARD"},
      {"FSDPConfig.use_orig_params", "",
       "not carried over: parameters keep their names and shapes under every strategy"},
  };
}

}  // namespace

std::vector<ComposerName> fsdp_names() {
  std::vector<ComposerName> names = {
      {"parallelism_config", "[sharding]", "fsdp and fsdp2 alike; tensor parallelism: not yet"},
      {"fsdp_config", "[sharding]"},
      {"FSDPConfig", "[sharding]"},
      {"FSDP2Config", "[sharding]"},
      {"FSDP2Config.reshard_after_forward", "[sharding] reshard_after_forward",
       "true or false; no smaller group of ranks to gather from, as an integer says there"},
      {"TPConfig", "", "not yet: there is no tensor parallelism"},
  };
  for (const auto& part : {of_both("FSDPConfig"), of_both("FSDP2Config"), of_fsdp()})
    names.insert(names.end(), part.begin(), part.end());
  return names;
}

}  // namespace tutti
