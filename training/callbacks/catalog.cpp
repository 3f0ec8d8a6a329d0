#include "training/callbacks/catalog.h"

#include "recipe/catalog.h"

namespace tutti {
namespace {

using enum KeyType;

Key time_unit() {
  return Key{"time_unit", kText, "hours", "unit of logged times"}.one_of(
      {"seconds", "minutes", "hours", "days"});
}

std::vector<Key> watched(std::vector<Key> more) {
  std::vector<Key> keys = {
      {"monitor", kText, "",
       "name of the metric, for example MulticlassAccuracy, or as logged: metrics/eval/MulticlassAccuracy"},
      {"dataloader_label", kText, "eval", "label of the metric's evaluator"},
      Key{"comp", kText, "none",
          "direction of improvement; when absent, less for a loss, error, perplexity or cross entropy"}
          .one_of({"greater", "gt", "less", "lt"}),
  };
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

Key left_out(const char* name, const std::string& why) {
  return Key{name, kAny, "none", ""}.not_carried_over(why);
}

std::vector<Key> memory_file(const char* filename, std::vector<Key> more = {}) {
  std::vector<Key> keys = {
      {"folder", kText, "memory", "folder of the files, relative to the run's folder"},
      {"filename", kText, filename, "name of the file; {run_name}, {rank}, {epoch} and {batch} are replaced"},
      {"overwrite", kBoolean, "false", "overwrite an older file of that name instead of keeping both"},
      left_out("max_entries", "the file has the current use of memory, no history"),
      left_out("remote_file_name", "tutti writes to file systems; use another program to copy the files"),
  };
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

std::vector<Entry> monitors() {
  return {
      {"activation_monitor",
       "Logs norm, mean, kurtosis and maximum of each layer's inputs and outputs.",
       {Key{"interval", kTime, "25ba", "how often; always at the first batch"}.more_than(0),
        {"ignore_module_types", kTexts, "[]", "skip layers with names that contain one of these"},
        left_out("only_log_wandb", "all loggers receive the metrics")}},
      {"lr_monitor", "Logs the learning rate of every step; Composer's LRMonitor."},
      {"memory_monitor",
       "Logs the memory of rank 0's tensors in GB; Composer's MemoryMonitor.",
       {{"memory_keys", kAny, "none",
         "a table of figures and their logged names, {\"allocated_bytes.all.peak\" = \"peak\"}; when absent, "
         "that and allocated_bytes.all.current as peak_allocated_mem and current_allocated_mem"},
        left_out("dist_aggregate_batch_interval", "a callback sees only the memory of its own rank")}},
      {"optimizer_monitor",
       "Logs the L2 norms of gradients and of optimizer state; Composer's OptimizerMonitor.",
       {{"log_optimizer_metrics", kBoolean, "true", "also norms of moments, parameters and updates"},
        Key{"batch_log_interval", kInteger, "10", "how often, in batches"}.at_least(1)}},
      {"runtime_estimator",
       "Logs the estimated remaining time; Composer's RuntimeEstimator.",
       {Key{"skip_batches", kInteger, "1", "skip the first batches, which are slower"}.at_least(0),
        time_unit()}},
      {"speed_monitor",
       "Logs throughput, time and utilisation of the device; Composer's SpeedMonitor.",
       {Key{"window_size", kInteger, "100", "batches over which throughput is averaged"}.at_least(1),
        Key{"gpu_flops_available", kNumber, "none",
            "peak floating-point operations per second of one device; when absent, from a table of GPUs"}
            .more_than(0),
        time_unit()}},
      {"system_metrics_monitor",
       "Logs the machine's processors, memory, disk and network; Composer's SystemMetricsMonitor.",
       {{"log_all_data", kBoolean, "false",
         "all GPUs instead of the least and most busy; no effect without GPUs"}}},
  };
}

std::vector<Entry> stoppers() {
  return {
      {"early_stopper", "Ends the training when a metric stops improving; Composer's EarlyStopper.",
       watched({{"min_delta", kNumber, "0", "smaller improvements do not count"},
                Key{"patience", kTime, "1ep", "longest time without improvement"}.in_units({"ep", "ba"})})},
      {"nan_monitor", "Ends the run with an error when the loss is not a number; Composer's NaNMonitor."},
      {"threshold_stopper",
       "Ends the training when a metric is better than a threshold; Composer's ThresholdStopper.",
       watched({{"threshold", kNumber, "", "the value to surpass"},
                {"stop_on_batch", kBoolean, "false", "check after each batch, not only after each epoch"}})},
  };
}

Entry mlperf() {
  return {
      "mlperf_callback",
      "Writes the result file of an MLPerf Training submission; Composer's MLPerfCallback.",
      {{"root_folder", kText, "", "folder of the submission, relative to the run's folder"},
       Key{"index", kInteger, "", "the repetition of the run: result_[index].txt"}.at_least(0),
       Key{"benchmark", kText, "resnet", "name of the benchmark; bert counts time in samples"}.one_of(
           {"resnet", "bert"}),
       {"target", kNumber, "0.759", "the timed run ends when the metric surpasses this"},
       Key{"division", kText, "open", "of the submission"}.one_of({"open"}),
       {"metric_name", kText, "MulticlassAccuracy", "the metric"},
       {"metric_label", kText, "eval", "label of the metric's evaluator"},
       {"submitter", kText, "MosaicML", "the organisation"},
       {"system_name", kText, "none", "when absent, like 8xCPU_tutti"},
       Key{"status", kText, "onprem", "of the system"}.one_of({"onprem", "cloud", "preview"}),
       Key{"host_processors_per_node", kInteger, "none", "part of the description of the system"}.at_least(1),
       {"exit_at_target", kBoolean, "false", "end the training at the target"},
       {"exist_ok", kBoolean, "false", "overwrite an older result file instead of failing"},
       left_out("cache_clear_cmd", "callbacks start no programs; run it before `tutti train`")}};
}

Entry export_for_inference() {
  const std::string no_graph = "only weights are written, no graph";
  return {
      "export_for_inference",
      "Writes the weights as a safetensors file at the end of training.",
      {{"save_path", kText, "", "the file, relative to the run's folder; {epoch} and {batch} are replaced"},
       {"interval", kTime, "0ba", "how often during training; 0ba: never"},
       left_out("save_format", "only safetensors; torchscript and onnx need Python"),
       left_out("save_object_store", "save_path is a path; use another program to copy the file"),
       left_out("sample_input", no_graph),
       left_out("transforms", no_graph),
       left_out("input_names", no_graph),
       left_out("output_names", no_graph)}};
}

std::vector<Entry> samples() {
  return {
      {"generate",
       "Logs a table of a language model's continuations of prompts; Composer's Generate.",
       {{"prompts", kAny, "",
         "a list of texts (if the model's tokens are bytes) or of token lists: [[17, 4], [2]]"},
        Key{"interval", kTime, "", "how often; always at the end of training"}.more_than(0),
        Key{"batch_size", kInteger, "none", "prompts at once; all when absent"}.at_least(1),
        Key{"max_new_tokens", kInteger, "20", "tokens to add to each prompt"}.at_least(1).at_most(1e6),
        {"do_sample", kBoolean, "false", "sample tokens; false: take the likeliest token"},
        Key{"temperature", kNumber, "1", "divides the scores before sampling"}.more_than(0),
        Key{"top_k", kInteger, "50", "sample among this many likeliest tokens; 0: all"}.at_least(0),
        Key{"top_p", kNumber, "1", "sample among the fewest tokens with this total probability"}
            .more_than(0)
            .at_most(1)}},
      {"image_visualizer",
       "Logs images of training batches and of the first batch of evaluations; Composer's ImageVisualizer.",
       {Key{"interval", kTime, "100ba", "how often; always at the first batch"}.more_than(0),
        Key{"mode", kText, "input", "segmentation: also the predicted and true classes of pixels"}.one_of(
            {"input", "segmentation"}),
        Key{"num_images", kInteger, "8", "images per batch, at most those of the first microbatch"}.at_least(
            1),
        {"channels_last", kBoolean, "false", "images and scores are [N, H, W, C]"},
        {"input_key", kText, "input", "key of the images in a batch"},
        {"target_key", kText, "target", "key of the pixels' classes in a batch"}}},
  };
}

std::vector<Entry> of_checkpoint() {
  return {refused_entry("checkpoint_saver",
                        "Not a callback: [checkpoint] says when a run is saved and where (interval, "
                        "save_folder, save_filename, keep; docs/checkpoints.md)"),
          refused_entry("load_checkpoint",
                        "Not a callback: [checkpoint] load_path says what a run starts from "
                        "(load_weights_only, load_strict_model_weights; docs/checkpoints.md)")};
}

std::vector<Entry> others() {
  return {
      export_for_inference(),
      {"free_outputs", "Releases the model's outputs before backward; Composer's FreeOutputs."},
      {"memory_snapshot", "Writes the use of memory to a file; Composer's MemorySnapshot.",
       memory_file("rank{rank}.{batch}.memory_snapshot.txt",
                   {{"interval", kTime, "3ba", "how often"},
                    Key{"skip_batches", kInteger, "1", "skip the first batches"}.at_least(0)})},
      {"oom_observer", "Writes the use of memory to a file when memory runs out; Composer's OOMObserver.",
       memory_file("rank{rank}_oom.txt")},
      mlperf(),
  };
}

}  // namespace

Catalog callback_catalog() {
  std::vector<Entry> entries = monitors();
  for (const auto& more : {samples(), stoppers(), others(), of_checkpoint()})
    entries.insert(entries.end(), more.begin(), more.end());
  entries.push_back(plugin_entry("callback"));
  return {.section = "callbacks",
          .noun = "callback",
          .doc = "Callbacks that watch the training and log figures. Names and meanings are Composer's.",
          .entries = std::move(entries),
          .repeated = true};
}

}  // namespace tutti
