#include "job/names/transformers_names.h"

#include "job/names/name_list.h"

namespace tutti {
namespace {

void add_training(NameList& names) {
  names
      .add({"per_device_train_batch_size", "per_gpu_train_batch_size"}, "[data.train] batch_size",
           "that of all ranks together; [train] device_train_microbatch_size is what a rank computes at once")
      .add({"per_device_eval_batch_size", "per_gpu_eval_batch_size"}, "[data.eval] batch_size",
           "that of all ranks together")
      .add({"auto_find_batch_size"}, "[train] grad_accum", "\"auto\" finds it, and the step stays the same")
      .add({"adam_beta1", "adam_beta2"}, "[optimizer] betas", "as in betas = [0.9, 0.999]")
      .add({"adam_epsilon"}, "[optimizer] eps")
      .add({"optim", "optim_args"}, "[optimizer]", "kind = \"adamw\" is the default of transformers")
      .add({"lr_scheduler_type", "lr_scheduler_kwargs"}, "[scheduler]",
           "\"linear\" is kind = \"linear_with_warmup\", \"cosine\" is \"cosine_annealing_with_warmup\"")
      .add({"cosine_with_warmup", "get_cosine_schedule_with_warmup", "cosine_with_min_lr"},
           "[scheduler] kind = \"cosine_annealing_with_warmup\"", "alpha_f is the least multiplier")
      .add({"linear_decay_with_warmup", "get_linear_schedule_with_warmup"},
           "[scheduler] kind = \"linear_with_warmup\"", "with alpha_f = 0.0")
      .add({"get_polynomial_decay_schedule_with_warmup"}, "[scheduler] kind = \"polynomial_with_warmup\"")
      .add({"cosine_with_restarts"}, "[scheduler] kind = \"cosine_annealing_warm_restarts\"",
           "which has no warm-up")
      .add({"adamw_torch", "adamw_torch_fused", "adamw_hf"}, "[optimizer] kind = \"adamw\"")
      .leave_out({"inverse_sqrt", "inv_sqrt_with_warmup"},
                 "a plugin brings a scheduler; warmup_stable_decay, too, holds a rate for as long as wanted")
      .leave_out({"adamw_8bit", "adamw_bnb_8bit", "paged_adamw_8bit", "AdamW8bit"},
                 "[sharding] shares the state of an optimizer, and offload keeps it on the host")
      .add({"warmup_ratio", "warmup_steps"}, "[scheduler] t_warmup",
           "as in t_warmup = \"0.1dur\"; steps are \"500ba\"")
      .add({"label_smoothing_factor"}, "[[algorithms]] kind = \"label_smoothing\"")
      .add({"gradient_checkpointing_kwargs"}, "[sharding] activation_checkpointing")
      .add({"data_seed"}, "seed", "the order of samples is drawn from it, too")
      .add({"full_determinism"}, "[train] deterministic_mode", "a run has the same bits each time without it")
      .leave_out({"average_tokens_across_devices"},
                 "a loss is the mean over the targets of all ranks, always")
      .leave_out({"neftune_noise_alpha"}, "tutti adds no noise to embeddings")
      .leave_out({"optim_target_modules"}, "tutti has no optimizer for some layers alone but Muon")
      .leave_out({"group_by_length", "length_column_name"},
                 "texts are packed to one length ([data.train] packing)");
}

void add_evaluations_and_logs(NameList& names) {
  names
      .add({"eval_strategy", "evaluation_strategy", "eval_steps"}, "[train] eval_interval",
           "as in eval_interval = \"1ep\"; steps are \"500ba\"")
      .add({"eval_delay"}, "[train] eval_interval", "the first evaluation is after one interval")
      .add({"do_eval", "do_predict"}, "[data.eval]", "it is evaluated; `tutti predict` writes outputs")
      .add({"do_train"}, "tutti train")
      .add({"metric_for_best_model", "greater_is_better", "load_best_model_at_end"}, "[checkpoint] best",
           "as in best = { metric = \"MulticlassAccuracy\", keep = 1 }; eval, predict and export take it by "
           "its folder")
      .add({"compute_metrics", "include_for_metrics", "batch_eval_metrics"}, "[[data.eval.metrics]]")
      .add({"logging_steps", "logging_strategy", "logging_first_step"}, "[train] progress_interval",
           "metrics.jsonl has every step")
      .add({"report_to"}, "[[loggers]]", "as kind = \"tensorboard\"; a command may pass all to a service")
      .add({"disable_tqdm"}, "[train] progress_bar")
      .add({"logging_nan_inf_filter"}, "[[callbacks]] kind = \"nan_monitor\"", "nothing is filtered")
      .add({"include_num_input_tokens_seen"}, "[[callbacks]] kind = \"speed_monitor\"")
      .leave_out({"output_dir", "logging_dir", "overwrite_output_dir"},
                 "`--run-dir DIR` names the folder of a run")
      .leave_out({"log_level", "log_level_replica", "log_on_each_node"},
                 "events of all ranks are in the run's folder, and warnings on the console")
      .leave_out({"eval_on_start"}, "`tutti eval` measures a checkpoint or initial weights")
      .leave_out({"prediction_loss_only", "eval_accumulation_steps", "eval_do_concat_batches",
                  "eval_use_gather_object"},
                 "evaluations sum over batches, and keep no outputs")
      .leave_out({"skip_memory_metrics"}, "the memory_monitor logs memory where it is listed")
      .leave_out({"debug"}, "the journal of a run is always there: `tutti replay`, `tutti diff`");
}

void add_checkpoints(NameList& names) {
  names
      .add({"save_strategy", "save_steps"}, "[checkpoint] interval",
           "as in interval = \"1ep\"; steps are \"500ba\"")
      .add({"save_total_limit"}, "[checkpoint] keep")
      .add({"save_only_model"}, "[checkpoint] save_weights_only")
      .add({"resume_from_checkpoint"}, "[checkpoint] resume",
           "also the state of callbacks, and the place in the data")
      .leave_out({"save_safetensors"}, "`tutti export` writes safetensors; checkpoints are HDF5")
      .leave_out({"save_on_each_node"}, "ranks write one checkpoint together")
      .leave_out({"restore_callback_states_from_checkpoint", "ignore_data_skip"},
                 "a resumed run is where it was, in its data and its callbacks")
      .leave_out({"enable_jit_checkpoint"}, "SIGTERM and `tutti stop` write a checkpoint, always")
      .leave_out({"push_to_hub", "hub_model_id", "hub_strategy", "hub_token", "hub_private_repo",
                  "hub_always_push", "hub_revision"},
                 "tutti needs no network; `tutti export --to-hf` writes a folder that you may push");
}

void add_classes(NameList& names) {
  names
      .add({"AutoModel", "AutoModelForCausalLM", "AutoModelForMaskedLM", "AutoModelForSequenceClassification",
            "AutoConfig"},
           "[model] kind = \"hf\"", "with the path of a folder")
      .add({"BertForSequenceClassification"}, "[model] kind = \"bert_classification\"")
      .add({"BertForMaskedLM"}, "[model] kind = \"bert_mlm\"")
      .add({"GPT2LMHeadModel"}, "[model] kind = \"gpt\"")
      .add({"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM",
            "mistral", "qwen2", "qwen3"},
           "[model] kind = \"llama\"")
      .add({"ViTForImageClassification", "ViTModel"}, "[model] kind = \"vit\"",
           "of torchvision's names; transformers' is kind = \"exported\"")
      .add({"AutoTokenizer", "PreTrainedTokenizerFast"}, "[data.train] tokenizer",
           "a folder's tokenizer.json")
      .add({"LoraConfig"}, "[[algorithms]] kind = \"lora\"")
      .add({"PeftModel", "get_peft_model"}, "[[algorithms]]", "as kind = \"lora\"")
      .add({"SFTTrainer", "SFTConfig"}, "[data.train] messages_field")
      .add({"TrainingArguments", "Seq2SeqTrainingArguments", "Seq2SeqTrainer"}, "[train]",
           "`tutti explain` knows the arguments one by one")
      .add({"EarlyStoppingCallback"}, "[[callbacks]]", "as kind = \"early_stopper\"")
      .leave_out({"DataCollatorWithPadding", "DataCollatorForLanguageModeling", "DataCollatorForSeq2Seq"},
                 "samples of a dataset are of one size; the transform mask_tokens masks");
}

// Of config.json.
void add_models(NameList& names) {
  names.add({"embd_pdrop"}, "[model] dropout", "gpt has one for all layers")
      .add({"activation_function"}, "[model] kind = \"gpt\"", "with gelu_new")
      .add({"layer_norm_epsilon"}, "[model] layer_norm_eps")
      .add({"bos_token_id"}, "[data.train] bos_token", "by its text")
      .add({"eos_token_id"}, "[data.train] eos_token", "by its text")
      .add({"use_sliding_window", "max_window_layers"}, "[model] sliding_window")
      .leave_out({"n_inner"}, "the feed-forward blocks of gpt are 4 times as wide")
      .leave_out({"reorder_and_upcast_attn", "scale_attn_by_inverse_layer_idx", "scale_attn_weights",
                  "add_cross_attention", "pretraining_tp", "summary_activation", "summary_first_dropout",
                  "summary_proj_to_labels", "summary_type", "summary_use_proj"},
                 "the zoo's models have no such variants; a config.json that asks for one is refused");
}

void add_machines(NameList& names) {
  names
      .add({"bf16", "fp16", "bf16_full_eval", "fp16_full_eval"}, "[train] precision",
           "\"amp_bf16\" or \"amp_fp16\"")
      .add({"use_cpu", "no_cuda"}, "[device]", "as kind = \"cpu\"")
      .add({"dataloader_num_workers"}, "[data.train] num_workers")
      .add({"dataloader_prefetch_factor"}, "[data.train] prefetch")
      .add({"dataloader_drop_last"}, "[data.train] drop_last")
      .add({"fsdp", "fsdp_config"}, "[sharding]", "full_shard is strategy = \"full\"")
      .add({"ddp_backend"}, "[collectives] backend")
      .add({"ddp_bucket_cap_mb"}, "[collectives] bucket_mb")
      .add({"ddp_timeout"}, "[train] hang_timeout")
      .add({"jit_mode_eval", "torch_compile", "torch_compile_backend", "torch_compile_mode"},
           "[train] cuda_graphs", "nothing is compiled")
      .leave_out({"local_rank"}, "mpirun or srun says which rank a process is")
      .leave_out({"dataloader_pin_memory", "dataloader_persistent_workers"},
                 "batches are pinned where a GPU computes, and threads stay")
      .leave_out({"ddp_find_unused_parameters", "ddp_broadcast_buffers"},
                 "parameters without gradients are found, and buffers are the same on all ranks")
      .leave_out({"accelerator_config", "parallelism_config"},
                 "`mpirun -np 4 tutti train RECIPE` says how many ranks train")
      .leave_out({"remove_unused_columns", "label_names"},
                 "a model takes from a batch what it needs, by name")
      .leave_out({"torch_empty_cache_steps"}, "memory is returned where it runs out")
      .leave_out({"use_liger_kernel", "liger_kernel_config"}, "kernels are libtorch's")
      .leave_out({"use_dora", "init_lora_weights", "rank_pattern", "alpha_pattern", "layer_replication"},
                 "adapters are PEFT's LoRA, all of one rank")
      .leave_out({"fan_in_fan_out"}, "layers say it themselves, and adapters that are written hold it")
      .leave_out({"task_type", "inference_mode"}, "an adapter is of the recipe's model")
      .leave_out({"use_cache"}, "keys and values are kept where texts are generated")
      .leave_out({"project", "trackio_space_id"}, "Trackio is a hosted service");
}

}  // namespace

const std::vector<ForeignName>& transformers_names() {
  static const std::vector<ForeignName> all = [] {
    NameList names("transformers'");
    add_training(names);
    add_evaluations_and_logs(names);
    add_checkpoints(names);
    add_classes(names);
    add_models(names);
    add_machines(names);
    return names.all();
  }();
  return all;
}

}  // namespace tutti
