#include "training/callbacks/catalog.h"

#include "recipe/catalog.h"

namespace tutti {
namespace {

using enum KeyType;

Key time_unit() {
  return Key{"time_unit", kText, "hours", "what times are logged in"}.one_of(
      {"seconds", "minutes", "hours", "days"});
}

std::vector<Key> watched(std::vector<Key> more) {
  std::vector<Key> keys = {
      {"monitor", kText, "", "the metric's name: MulticlassAccuracy"},
      {"dataloader_label", kText, "eval", "whose metric: the evaluator's label"},
      Key{"comp", kText, "none",
          "which is better; less, when absent, for a loss, error, perplexity or cross entropy"}
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
      {"folder", kText, "memory", "where the files go, within the run's folder"},
      {"filename", kText, filename, "the file's name; {run_name}, {rank}, {epoch} and {batch} are put in"},
      {"overwrite", kBoolean, "false", "an older file of that name is written over, not kept beside the new"},
      left_out("max_entries", "what holds memory is written, and no history of how it was had"),
      left_out("remote_file_name", "tutti writes to file systems; another program may copy its files"),
  };
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

std::vector<Entry> monitors() {
  return {
      {"activation_monitor",
       "Logs norm, mean, kurtosis and maximum of each layer's inputs and outputs.",
       {Key{"interval", kTime, "25ba", "how often; the first batch is looked at too"}.more_than(0),
        {"ignore_module_types", kTexts, "[]", "layers whose names contain one of these are left out"},
        left_out("only_log_wandb", "all loggers get what is logged, as Composer's do without one of W&B")}},
      {"lr_monitor", "Logs the learning rate of every step; Composer's LRMonitor."},
      {"memory_monitor",
       "Logs what rank 0's tensors take, in GB; Composer's MemoryMonitor.",
       {{"memory_keys", kAny, "none",
         "a table of what is logged under which name, {\"allocated_bytes.all.peak\" = \"peak\"}; when "
         "absent, that and allocated_bytes.all.current as peak_allocated_mem and current_allocated_mem"},
        left_out("dist_aggregate_batch_interval", "a callback sees the memory of its own rank alone")}},
      {"optimizer_monitor",
       "Logs the L2 norms of gradients, and of what the optimizer keeps; Composer's OptimizerMonitor.",
       {{"log_optimizer_metrics", kBoolean, "true", "norms of moments, parameters and updates too"},
        Key{"batch_log_interval", kInteger, "10", "how often, in batches"}.at_least(1)}},
      {"runtime_estimator",
       "Logs how long the training still takes; Composer's RuntimeEstimator.",
       {Key{"skip_batches", kInteger, "1", "the first batches, which are slower, do not count"}.at_least(0),
        time_unit()}},
      {"speed_monitor",
       "Logs throughput, time, and the part of the device's peak that is used; Composer's SpeedMonitor.",
       {Key{"window_size", kInteger, "100", "batches over which throughput is averaged"}.at_least(1),
        Key{"gpu_flops_available", kNumber, "none",
            "floating-point operations a second of one device; when absent, of GPUs that are known"}
            .more_than(0),
        time_unit()}},
      {"system_metrics_monitor",
       "Logs the machine's processors, memory, disk and network; Composer's SystemMetricsMonitor.",
       {{"log_all_data", kBoolean, "false",
         "of each GPU, not of the least and the most busy alone; changes nothing where there is none"}}},
  };
}

std::vector<Entry> stoppers() {
  return {
      {"early_stopper", "Ends the training when a metric no longer gets better; Composer's EarlyStopper.",
       watched({{"min_delta", kNumber, "0", "what is better by no more than this is no better"},
                Key{"patience", kTime, "1ep", "how long it may not get better"}.in_units({"ep", "ba"})})},
      {"nan_monitor", "Ends the run with an error when the loss is not a number; Composer's NaNMonitor."},
      {"threshold_stopper",
       "Ends the training when a metric is better than a threshold; Composer's ThresholdStopper.",
       watched({{"threshold", kNumber, "", "the value that must be surpassed"},
                {"stop_on_batch", kBoolean, "false", "look after each batch, not each epoch alone"}})},
  };
}

Entry mlperf() {
  return {"mlperf_callback",
          "Writes the result file of an MLPerf Training submission; Composer's MLPerfCallback.",
          {{"root_folder", kText, "", "of the submission, within the run's folder unless it begins with /"},
           Key{"index", kInteger, "", "the repetition of the run: result_[index].txt"}.at_least(0),
           Key{"benchmark", kText, "resnet", "the benchmark's name; of bert, time is told in samples"}.one_of(
               {"resnet", "bert"}),
           {"target", kNumber, "0.759", "what the metric must surpass to end the timed run"},
           Key{"division", kText, "open", "of the submission"}.one_of({"open"}),
           {"metric_name", kText, "MulticlassAccuracy", "the metric"},
           {"metric_label", kText, "eval", "its evaluator's label"},
           {"submitter", kText, "MosaicML", "the organisation"},
           {"system_name", kText, "none", "when absent, like 8xCPU_tutti"},
           Key{"status", kText, "onprem", "of the system"}.one_of({"onprem", "cloud", "preview"}),
           Key{"host_processors_per_node", kInteger, "none", "for the description of the system"}.at_least(1),
           {"exit_at_target", kBoolean, "false", "training ends where the target is surpassed"},
           {"exist_ok", kBoolean, "false", "an older result file is written over, and no error"},
           left_out("cache_clear_cmd", "a callback starts no program; run it before `tutti train`")}};
}

Entry export_for_inference() {
  const std::string no_graph = "the weights are written, and no graph is traced";
  return {"export_for_inference",
          "Writes the weights as a safetensors file when the training is over.",
          {{"save_path", kText, "", "the file, within the run's folder; {epoch} and {batch} are put in"},
           {"interval", kTime, "0ba", "how often on the way; 0ba: never"},
           left_out("save_format", "the file is a safetensors file; torchscript and onnx are Python's"),
           left_out("save_object_store", "save_path is a path; another program may copy the file"),
           left_out("sample_input", no_graph),
           left_out("transforms", no_graph),
           left_out("input_names", no_graph),
           left_out("output_names", no_graph)}};
}

std::vector<Entry> samples() {
  return {
      {"generate",
       "Logs as a table how a language model goes on from prompts; Composer's Generate.",
       {{"prompts", kAny, "",
         "a list of texts, of a model whose tokens are bytes, or of lists of tokens: [[17, 4], [2]]"},
        Key{"interval", kTime, "", "how often; when the training is over too"}.more_than(0),
        Key{"batch_size", kInteger, "none", "prompts at once; all when absent"}.at_least(1),
        Key{"max_new_tokens", kInteger, "20", "tokens that are added to each"}.at_least(1),
        {"do_sample", kBoolean, "false", "tokens are drawn; false: each is the likeliest"},
        Key{"temperature", kNumber, "1", "what the scores are divided by before one is drawn"}.more_than(0),
        Key{"top_k", kInteger, "50", "one of so many of the likeliest is drawn; 0: of all"}.at_least(0),
        Key{"top_p", kNumber, "1", "and of the fewest whose probabilities reach this"}.more_than(0).at_most(
            1)}},
      {"image_visualizer",
       "Logs images of batches in training, and of the first of each evaluation; Composer's ImageVisualizer.",
       {Key{"interval", kTime, "100ba", "how often; of the first batch too"}.more_than(0),
        Key{"mode", kText, "input", "segmentation: the classes of their pixels too, found and true"}.one_of(
            {"input", "segmentation"}),
        Key{"num_images", kInteger, "8", "images of a batch; those of the first microbatch at most"}.at_least(
            1),
        {"channels_last", kBoolean, "false", "images are [N, H, W, C], and scores too"},
        {"input_key", kText, "input", "where in a batch the images are"},
        {"target_key", kText, "target", "where in a batch the classes of their pixels are"}}},
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
      {"free_outputs", "Lets go of the model's outputs before backward; Composer's FreeOutputs."},
      {"memory_snapshot", "Writes what holds memory into a file; Composer's MemorySnapshot.",
       memory_file("rank{rank}.{batch}.memory_snapshot.txt",
                   {{"interval", kTime, "3ba", "how often"},
                    Key{"skip_batches", kInteger, "1", "the first batches are left out"}.at_least(0)})},
      {"oom_observer", "Writes what held memory when it ran out into a file; Composer's OOMObserver.",
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
          .doc = "What watches the training and logs what it sees. Names and meanings are Composer's.",
          .entries = std::move(entries),
          .repeated = true};
}

}  // namespace tutti
