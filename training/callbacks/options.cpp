#include "training/callbacks/options.h"

#include "recipe/catalog.h"
#include "recipe/section.h"

namespace tutti {
namespace {

template <class Options>
Bound<Options> unit_of_times() {
  return option("time_unit", &Options::time_unit, "unit of logged times")
      .one_of({"seconds", "minutes", "hours", "days"});
}

Key left_out(const char* name, const std::string& why) {
  return Key{name, KeyType::kAny, "none", ""}.not_carried_over(why);
}

template <class Options>
std::vector<Bound<Options>> watched(const std::vector<Bound<Options>>& more) {
  return with_keys<Options>(
      {option<Options>("monitor", &Options::monitor,
                       "name of the metric, for example MulticlassAccuracy, or as logged: "
                       "metrics/eval/MulticlassAccuracy")
           .as(KeyType::kText)
           .required(),
       option<Options>("dataloader_label", &Options::dataloader_label, "label of the metric's evaluator"),
       option<Options>(
           "comp", &Options::comp,
           "direction of improvement; when absent, less for a loss, error, mse, mae, perplexity or cross "
           "entropy")
           .may_be_absent()
           .one_of({"greater", "gt", "less", "lt"})},
      more);
}

template <class Options>
std::vector<Bound<Options>> memory_file(const std::vector<Bound<Options>>& more = {}) {
  return with_keys<Options>(
      {option<Options>("folder", &Options::folder, "folder of the files, relative to the run's folder"),
       option<Options>("filename", &Options::filename,
                       "name of the file; {run_name}, {rank}, {epoch} and {batch} are replaced"),
       option<Options>("overwrite", &Options::overwrite,
                       "overwrite an older file of that name instead of keeping both"),
       left_out("max_entries", "the file has the current use of memory, no history"),
       left_out("remote_file_name", "tutti writes to file systems; use another program to copy the files")},
      more);
}

std::vector<Entry> checkpoint_entries() {
  return {refused_entry("checkpoint_saver",
                        "Not a callback: [checkpoint] says when a run is saved and where (interval, "
                        "save_folder, save_filename, keep; docs/checkpoints.md)"),
          refused_entry("load_checkpoint",
                        "Not a callback: [checkpoint] load_path says what a run starts from "
                        "(load_weights_only, load_strict_model_weights; docs/checkpoints.md)")};
}

}  // namespace

Kind<ActivationMonitorOptions> ActivationMonitorOptions::kind() {
  using Options = ActivationMonitorOptions;
  return {"activation_monitor",
          "Logs norm, mean, kurtosis and maximum of each layer's inputs and outputs.",
          {option("interval", &Options::interval, "how often; always at the first batch").more_than(0),
           option("ignore_module_types", &Options::ignore_module_types,
                  "skip layers with names that contain one of these"),
           left_out("only_log_wandb", "all loggers receive the metrics")}};
}

Kind<LrMonitorOptions> LrMonitorOptions::kind() {
  return {"lr_monitor", "Logs the learning rate of every step; Composer's LRMonitor."};
}

Kind<MemoryMonitorOptions> MemoryMonitorOptions::kind() {
  return {
      "memory_monitor",
      "Logs the memory of rank 0's tensors in GB; Composer's MemoryMonitor.",
      {option("memory_keys", &MemoryMonitorOptions::memory_keys,
              "a table of figures and their logged names, {\"allocated_bytes.all.peak\" = \"peak\"}; "
              "when absent, Composer's figures as peak_allocated_mem, current_reserved_mem, ...; a CPU has "
              "allocated_bytes alone"),
       left_out("dist_aggregate_batch_interval", "a callback sees only the memory of its own rank")}};
}

Kind<OptimizerMonitorOptions> OptimizerMonitorOptions::kind() {
  using Options = OptimizerMonitorOptions;
  return {"optimizer_monitor",
          "Logs the L2 norms of gradients and of optimizer state; Composer's OptimizerMonitor.",
          {option("log_optimizer_metrics", &Options::log_optimizer_metrics,
                  "also norms of moments, parameters and updates"),
           option("batch_log_interval", &Options::batch_log_interval, "how often, in batches").at_least(1)}};
}

Kind<RuntimeEstimatorOptions> RuntimeEstimatorOptions::kind() {
  using Options = RuntimeEstimatorOptions;
  return {
      "runtime_estimator",
      "Logs the estimated remaining time; Composer's RuntimeEstimator.",
      {option("skip_batches", &Options::skip_batches, "skip the first batches, which are slower").at_least(0),
       unit_of_times<Options>()}};
}

Kind<SpeedMonitorOptions> SpeedMonitorOptions::kind() {
  using Options = SpeedMonitorOptions;
  return {
      "speed_monitor",
      "Logs throughput, time and utilisation of the device; Composer's SpeedMonitor.",
      {option("window_size", &Options::window_size, "batches over which throughput is averaged").at_least(1),
       option("gpu_flops_available", &Options::gpu_flops_available,
              "peak floating-point operations per second of one device; when absent, from a table of GPUs")
           .may_be_absent()
           .more_than(0),
       unit_of_times<Options>()}};
}

Kind<SystemMetricsMonitorOptions> SystemMetricsMonitorOptions::kind() {
  return {"system_metrics_monitor",
          "Logs the machine's processors, memory, disk and network; Composer's SystemMetricsMonitor.",
          {option("log_all_data", &SystemMetricsMonitorOptions::log_all_data,
                  "all GPUs instead of the least and most busy; no effect without GPUs")}};
}

Kind<GenerateOptions> GenerateOptions::kind() {
  using Options = GenerateOptions;
  return {"generate",
          "Logs a table of a language model's continuations of prompts; Composer's Generate.",
          {option("prompts", &Options::prompts,
                  "a list of texts (if the model's tokens are bytes) or of token lists: [[17, 4], [2]]")
               .required(),
           option("interval", &Options::interval, "how often; always at the end of training")
               .required()
               .more_than(0),
           option("batch_size", &Options::batch_size, "prompts at once; all when absent")
               .may_be_absent()
               .at_least(1),
           option("max_new_tokens", &Options::max_new_tokens, "tokens to add to each prompt")
               .at_least(1)
               .at_most(1e6),
           option("do_sample", &Options::do_sample, "sample tokens; false: take the likeliest token"),
           option("temperature", &Options::temperature, "divides the scores before sampling").more_than(0),
           option("top_k", &Options::top_k, "sample among this many likeliest tokens; 0: all").at_least(0),
           option("top_p", &Options::top_p, "sample among the fewest tokens with this total probability")
               .more_than(0)
               .at_most(1)}};
}

Kind<ImageVisualizerOptions> ImageVisualizerOptions::kind() {
  using Options = ImageVisualizerOptions;
  return {
      "image_visualizer",
      "Logs images of training batches and of the first batch of evaluations; Composer's ImageVisualizer.",
      {option("interval", &Options::interval, "how often; always at the first batch").more_than(0),
       option("mode", &Options::segmentation, "segmentation: also the predicted and true classes of pixels",
              {{"input", false}, {"segmentation", true}}),
       option("num_images", &Options::num_images, "images per batch, at most those of the first microbatch")
           .at_least(1),
       option("channels_last", &Options::channels_last, "images and scores are [N, H, W, C]"),
       option("input_key", &Options::input_key, "key of the images in a batch")
           .as(KeyType::kText)
           .written("input"),
       option("target_key", &Options::target_key, "key of the pixels' classes in a batch")
           .as(KeyType::kText)
           .written("target")}};
}

Kind<EarlyStopperOptions> EarlyStopperOptions::kind() {
  using Options = EarlyStopperOptions;
  return {"early_stopper", "Ends the training when a metric stops improving; Composer's EarlyStopper.",
          watched<Options>({option("min_delta", &Options::min_delta, "smaller improvements do not count"),
                            option("patience", &Options::patience, "longest time without improvement")
                                .in_units({"ep", "ba"})})};
}

Kind<NaNMonitorOptions> NaNMonitorOptions::kind() {
  return {"nan_monitor", "Ends the run with an error when the loss is not a number; Composer's NaNMonitor."};
}

Kind<ThresholdStopperOptions> ThresholdStopperOptions::kind() {
  using Options = ThresholdStopperOptions;
  return {"threshold_stopper",
          "Ends the training when a metric is better than a threshold; Composer's ThresholdStopper.",
          watched<Options>({option("threshold", &Options::threshold, "the value to surpass").required(),
                            option("stop_on_batch", &Options::stop_on_batch,
                                   "check after each batch, not only after each epoch")})};
}

Kind<ExportForInferenceOptions> ExportForInferenceOptions::kind() {
  using Options = ExportForInferenceOptions;
  const std::string no_graph = "only weights are written, no graph";
  return {"export_for_inference",
          "Writes the weights as a safetensors file at the end of training.",
          {option("save_path", &Options::save_path,
                  "the file, relative to the run's folder; {epoch} and {batch} are replaced")
               .required(),
           option("interval", &Options::interval, "how often during training; 0ba: never"),
           left_out("save_format", "only safetensors; torchscript and onnx need Python"),
           left_out("save_object_store", "save_path is a path; use another program to copy the file"),
           left_out("sample_input", no_graph), left_out("transforms", no_graph),
           left_out("input_names", no_graph), left_out("output_names", no_graph)}};
}

Kind<HfCheckpointerOptions> HfCheckpointerOptions::kind() {
  using Options = HfCheckpointerOptions;
  const std::string no_registry = "tutti writes to file systems; register the folder with a program of yours";
  return {
      "hf_checkpointer",
      "Writes a gpt, llama or bert as a folder that from_pretrained of Hugging Face's transformers reads "
      "(with "
      "LoRA: the adapters, for PEFT), at an interval and at the end of training; llm-foundry's "
      "HuggingFaceCheckpointer.",
      {option(
           "save_folder", &Options::save_folder,
           "the folder, relative to the run's folder; its huggingface/ has a folder each time; {run_name} is "
           "replaced")
           .required(),
       option("save_interval", &Options::save_interval, "how often").required(),
       option("huggingface_folder_name", &Options::huggingface_folder_name,
              "name of a folder; {epoch} and {batch} are replaced"),
       option("precision", &Options::precision, "of the floats in the file")
           .one_of({"float32", "float16", "bfloat16"}),
       left_out("overwrite", "a folder of the same name is overwritten"),
       left_out("mlflow_registered_model_name", no_registry), left_out("mlflow_logging_config", no_registry),
       left_out("flatten_imports", "there is no Python code to save"),
       left_out("final_register_only", no_registry)}};
}

Kind<FreeOutputsOptions> FreeOutputsOptions::kind() {
  return {"free_outputs", "Releases the model's outputs before backward; Composer's FreeOutputs."};
}

Kind<MemorySnapshotOptions> MemorySnapshotOptions::kind() {
  using Options = MemorySnapshotOptions;
  return {"memory_snapshot", "Writes the use of memory to a file; Composer's MemorySnapshot.",
          memory_file<Options>(
              {option("interval", &Options::interval, "how often"),
               option("skip_batches", &Options::skip_batches, "skip the first batches").at_least(0)})};
}

Kind<OomObserverOptions> OomObserverOptions::kind() {
  return {"oom_observer", "Writes the use of memory to a file when memory runs out; Composer's OOMObserver.",
          memory_file<OomObserverOptions>()};
}

Kind<ProfilerOptions> ProfilerOptions::kind() {
  using Options = ProfilerOptions;
  return {
      "profiler",
      "Records libtorch's operators and a GPU's kernels, by Kineto, in some steps of each epoch, as "
      "Composer's "
      "profiler with cyclic_schedule; the section may be empty. `tutti timeline` shows them beside the rest.",
      {option("skip_first", &Options::skip_first, "batches of each epoch before the first cycle").at_least(0),
       option("wait", &Options::wait, "batches of a cycle that are not recorded").at_least(0),
       option("warmup", &Options::warmup, "batches then, with the profiler on and nothing kept").at_least(0),
       option("active", &Options::active, "batches then that are recorded, into one file").at_least(1),
       option("repeat", &Options::repeat, "cycles of an epoch; 0: to its end").at_least(0),
       option("folder", &Options::folder, "folder of the traces, relative to the run's folder")
           .also_named({"torch_prof_folder"}),
       option("filename", &Options::filename,
              "name of a trace; {run_name}, {rank}, {epoch} and {batch} are replaced")
           .also_named({"torch_prof_filename"}),
       option("overwrite", &Options::overwrite,
              "overwrite an older file of that name instead of keeping both")
           .also_named({"torch_prof_overwrite"}),
       option("record_shapes", &Options::record_shapes, "also sizes of operators' inputs")
           .also_named({"torch_prof_record_shapes"}),
       option("profile_memory", &Options::profile_memory, "also allocations")
           .also_named({"torch_prof_profile_memory"}),
       option("with_flops", &Options::with_flops, "also floating-point operations of matrix products")
           .also_named({"torch_prof_with_flops"}),
       left_out("torch_prof_with_stack", "there is no Python whose stack could be recorded")}};
}

Catalog profiler_catalog() {
  Catalog catalog = section_catalog<ProfilerOptions>();
  catalog.default_kind = "none";
  return catalog;
}

Catalog callback_catalog() {
  std::vector<Entry> entries = CallbackKinds::entries();
  for (Entry& entry : checkpoint_entries()) entries.push_back(std::move(entry));
  entries.push_back(plugin_entry("callback"));
  return {.section = "callbacks",
          .noun = "callback",
          .doc = "Callbacks that watch the training and log figures. Names and meanings are Composer's.",
          .entries = std::move(entries),
          .repeated = true};
}

}  // namespace tutti
