#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "recipe/options.h"
#include "recipe/setting.h"
#include "recipe/time/time.h"

// The kinds of [[callbacks]], with Composer's names and defaults. Errors name members of type Setting. Free
// of libtorch.
namespace tutti {

class Callback;
using CallbackPtr = std::shared_ptr<Callback>;
struct CallbackEnvironment;

struct ActivationMonitorOptions {
  Time interval{25, TimeUnit::kBatch};
  std::vector<std::string> ignore_module_types = {};

  static Kind<ActivationMonitorOptions> kind();
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

struct LrMonitorOptions {
  static Kind<LrMonitorOptions> kind();
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

struct MemoryMonitorOptions {
  std::optional<Setting> memory_keys = {};  // default: Composer's

  static Kind<MemoryMonitorOptions> kind();
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

struct OptimizerMonitorOptions {
  bool log_optimizer_metrics = true;
  int64_t batch_log_interval = 10;

  static Kind<OptimizerMonitorOptions> kind();
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

struct RuntimeEstimatorOptions {
  int64_t skip_batches = 1;
  std::string time_unit = "hours";

  static Kind<RuntimeEstimatorOptions> kind();
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

struct SpeedMonitorOptions {
  int64_t window_size = 100;
  double gpu_flops_available = 0.0;  // per second and device; 0 = peak_flops()
  std::string time_unit = "hours";

  static Kind<SpeedMonitorOptions> kind();
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

struct SystemMetricsMonitorOptions {
  bool log_all_data = false;  // of GPUs: no effect without

  static Kind<SystemMetricsMonitorOptions> kind();
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

struct GenerateOptions {
  Setting prompts = {};  // a list of texts and lists of integers
  Time interval = {};
  int64_t batch_size = 0;  // prompts at once; 0 = all
  int64_t max_new_tokens = 20;
  bool do_sample = false;
  double temperature = 1.0;
  int64_t top_k = 50;
  double top_p = 1.0;

  static Kind<GenerateOptions> kind();
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

struct ImageVisualizerOptions {
  Time interval{100, TimeUnit::kBatch};
  bool segmentation = false;   // the model's outputs are scores [N, C, H, W]
  int64_t num_images = 8;      // at most
  bool channels_last = false;  // of images and scores: [N, H, W, C]
  // Keys of images and targets in a batch. Targets are classes [N, H, W], or probabilities shaped as the
  // scores.
  Setting input_key = {std::string("input"), "input_key", {}};
  Setting target_key = {std::string("target"), "target_key", {}};

  static Kind<ImageVisualizerOptions> kind();
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

// A metric that decides when to stop, and the direction of improvement.
struct WatchedMetricOptions {
  Setting monitor = {};  // "MulticlassAccuracy", or as logged: "metrics/eval/MulticlassAccuracy"
  std::string dataloader_label = "eval";  // the evaluator's
  // "greater", "gt", "less", "lt"; "" = less for a loss, error, mse, mae, perplexity or cross entropy, else
  // greater.
  std::string comp = "";
};

struct EarlyStopperOptions : WatchedMetricOptions {
  double min_delta = 0.0;
  Time patience{1, TimeUnit::kEpoch};

  static Kind<EarlyStopperOptions> kind();
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

struct NaNMonitorOptions {
  static Kind<NaNMonitorOptions> kind();
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

struct ThresholdStopperOptions : WatchedMetricOptions {
  double threshold = 0.0;
  bool stop_on_batch = false;

  static Kind<ThresholdStopperOptions> kind();
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

struct ExportForInferenceOptions {
  std::string save_path = "";  // see file_name
  Time interval{0, TimeUnit::kBatch};

  static Kind<ExportForInferenceOptions> kind();
  WrittenFile written() const { return {"save_path", save_path}; }
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

struct HfCheckpointerOptions {
  std::string save_folder = "";  // see file_name
  Time save_interval = {};
  std::string huggingface_folder_name = "ba{batch}";
  std::string precision = "float32";  // of the floats in the file

  static Kind<HfCheckpointerOptions> kind();
  std::string path() const { return save_folder + "/huggingface/" + huggingface_folder_name; }
  WrittenFile written() const { return {.key = "save_folder", .path = path(), .is_folder = true}; }
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

struct FreeOutputsOptions {
  static Kind<FreeOutputsOptions> kind();
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

// Where OomObserver and MemorySnapshot write: see file_name.
struct MemoryFile {
  std::string folder = "memory";
  std::string filename = "";
  bool overwrite = false;

  std::string path() const { return folder + "/" + filename; }
  WrittenFile written() const { return {"filename", path(), /*by_rank=*/true}; }
};

struct MemorySnapshotOptions : MemoryFile {
  MemorySnapshotOptions() : MemoryFile{.filename = "rank{rank}.{batch}.memory_snapshot.txt"} {}
  Time interval{3, TimeUnit::kBatch};
  int64_t skip_batches = 1;

  static Kind<MemorySnapshotOptions> kind();
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

struct OomObserverOptions : MemoryFile {
  OomObserverOptions() : MemoryFile{.filename = "rank{rank}_oom.txt"} {}

  static Kind<OomObserverOptions> kind();
  CallbackPtr make(const Setting& section, const CallbackEnvironment& environment) const;
};

// [profiler]: composer.profiler.cyclic_schedule, and the records of torch.profiler.
struct ProfilerOptions {
  int64_t skip_first = 0, wait = 0, warmup = 1, active = 4, repeat = 1;  // see action_at
  std::string folder = "torch_traces";                                   // see file_name
  std::string filename = "rank{rank}.{batch}.pt.trace.json";
  bool overwrite = false;
  bool record_shapes = false, profile_memory = false, with_flops = false;

  static Kind<ProfilerOptions> kind();
  CallbackPtr make(const CallbackEnvironment& environment) const;
};

// The catalog of [profiler].
Catalog profiler_catalog();

using CallbackKinds =
    Kinds<ActivationMonitorOptions, LrMonitorOptions, MemoryMonitorOptions, OptimizerMonitorOptions,
          RuntimeEstimatorOptions, SpeedMonitorOptions, SystemMetricsMonitorOptions, GenerateOptions,
          ImageVisualizerOptions, EarlyStopperOptions, NaNMonitorOptions, ThresholdStopperOptions,
          ExportForInferenceOptions, HfCheckpointerOptions, FreeOutputsOptions, MemorySnapshotOptions,
          OomObserverOptions>;

// The catalog of [[callbacks]].
Catalog callback_catalog();

}  // namespace tutti
