#include "job/names/foundry_names.h"

#include "job/names/name_list.h"

namespace tutti {
namespace {

constexpr const char* kFoundry = "llm-foundry's";
constexpr const char* kStreaming = "Streaming's";
constexpr const char* kGptHas = "the kind gpt is GPT-2's network";

std::vector<ForeignName> of_models() {
  return NameList(kFoundry)
      .add({"model.name"}, "[model] kind", "gpt for mpt_causal_lm, hf for hf_causal_lm")
      .add({"model.pretrained"}, "[model] kind = \"hf\"",
           "with the path of a folder, whose weights are read; without them they are drawn")
      .add({"optimizer.name"}, "[optimizer] kind")
      .add({"scheduler.name"}, "[scheduler] kind")
      .add({"mpt_causal_lm"}, "[model] kind = \"gpt\"")
      .add({"hf_causal_lm", "pretrained_model_name_or_path"}, "[model] kind = \"hf\"",
           "with the path of a folder")
      .add({"emb_pdrop", "resid_pdrop", "attn_pdrop"}, "[model] dropout", "gpt has one for all layers")
      .add({"attn_config", "alibi_bias_max"}, "[[algorithms]] kind = \"alibi\"",
           "instead of learned positions")
      .add({"learned_pos_emb"}, "[model] kind = \"gpt\"", "it has them, and llama has rotary ones")
      .add({"qk_ln"}, "[model] kind = \"llama\"", "with the normalised queries and keys of qwen3")
      .add({"norm_type"}, "[[algorithms]] kind = \"low_precision_layernorm\"", "gpt has LayerNorm")
      .leave_out({"expansion_ratio"}, "the feed-forward blocks of gpt are 4 times as wide")
      .leave_out({"no_bias"}, "the layers of gpt have biases")
      .leave_out({"init_config"}, "gpt starts as GPT-2 does, with a deviation of 0.02")
      .leave_out({"clip_qkv", "ffn_config", "ffn_type"}, kGptHas)
      .leave_out({"attn_impl", "use_flash_attention_2"}, "the fastest kernel for the sizes is taken")
      .leave_out({"attn_uses_sequence_id"}, "packing = \"first_fit\" keeps documents apart")
      .leave_out({"init_device"}, "each rank initializes its own rows")
      .leave_out({"use_auth_token"}, "nothing is downloaded")
      .leave_out({"trust_remote_code", "safe_load"}, "no Python code runs")
      .leave_out({"mup"}, "[[optimizer.groups]] have learning rates of their own")
      .all();
}

std::vector<ForeignName> data_names() {
  return NameList(kFoundry)
      .add({"global_train_batch_size"}, "[data.train] batch_size")
      .add({"device_eval_batch_size"}, "[data.eval] device_batch_size")
      .add({"train_loader"}, "[data.train]")
      .add({"eval_loader", "eval_loaders"}, "[data.eval]", "each further one is one of [[evaluators]]")
      .add({"hf_name", "hf_kwargs"}, "[data.train] kind = \"text\"",
           "of JSON lines: datasets.load_dataset(...).to_json(\"train.jsonl\") writes them")
      .add({"preprocessing_fn", "target_prompts", "target_responses", "loss_generating_tokens"},
           "[data.train] prompt_field",
           "lines of JSON have a prompt and a response, or the messages of a chat")
      .add({"packing_ratio"}, "[data.train] packing", "as many documents as fit are packed into a sample")
      .leave_out({"decoder_only_format"}, "a model that reads and writes texts apart is not among tutti's")
      .leave_out({"allow_pad_trimming"}, "samples are packed, and none is padded")
      .leave_out({"max_seq_len"}, "samples have the length with which they were written")
      .leave_out({"pin_memory"}, "batches are pinned where a GPU computes")
      .leave_out({"persistent_workers"}, "threads read, and live as long as the run")
      .leave_out({"timeout"}, "a reader that hangs is found by [train] hang_timeout")
      .all();
}

std::vector<ForeignName> of_runs() {
  return NameList(kFoundry)
      .add({"global_seed"}, "seed")
      .add({"icl_tasks", "eval_gauntlet", "icl_subset_num_batches"}, "tutti export",
           "with --to-hf it writes a folder, which an evaluation harness reads")
      .leave_out({"eval_first"}, "`tutti eval` evaluates before a run")
      .leave_out({"scheduled_gc"}, "C++ collects no garbage")
      .leave_out({"variables"}, "`tutti convert` puts their values where they are named")
      .leave_out({"log_config"}, "the run folder keeps the recipe")
      .leave_out({"expandable_segments"}, "see PYTORCH_CUDA_ALLOC_CONF")
      .leave_out({"verbose"}, "the log of a rank has every line")
      .all();
}

std::vector<ForeignName> of_streaming() {
  return NameList(kStreaming)
      .add({"shuffle_block_size"}, "[data.train] shuffle_block")
      .add({"cache_limit"}, "[data.train] cache_mb")
      .add({"proportion", "repeat", "choose", "batching_method"}, "[data.train] kind = \"mixture\"",
           "with a weight for each source")
      .leave_out({"shuffle_seed"}, "the order is drawn from the seed of the run")
      .leave_out(
          {"shuffle_algo", "partition_algo", "num_canonical_nodes", "sampling_granularity", "replication"},
          "the order is a function of seed and epoch, on any number of ranks")
      .leave_out({"predownload"}, "shards are fetched ahead of their use")
      .leave_out({"download_timeout", "download_retry"}, "the command of fetch decides")
      .leave_out({"validate_hash"}, "`tutti check --data` reads all hashes")
      .leave_out({"keep_zip"}, "set cache_mb")
      .leave_out({"allow_unsafe_types"}, "columns with pickled objects are not read")
      .leave_out({"stream_name", "stream_config"}, "a folder has one dataset; kind = \"mixture\" has several")
      .all();
}

}  // namespace

const std::vector<ForeignName>& foundry_names() {
  static const std::vector<ForeignName> all = [] {
    std::vector<ForeignName> joined;
    for (const auto& part : {of_models(), data_names(), of_runs(), of_streaming()})
      joined.insert(joined.end(), part.begin(), part.end());
    return joined;
  }();
  return all;
}

}  // namespace tutti
