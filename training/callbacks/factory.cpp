#include "training/callbacks/factory.h"

#include "runtime/clock.h"
#include "training/callbacks/monitors/activation_monitor.h"
#include "training/callbacks/monitors/memory_monitor.h"
#include "training/callbacks/monitors/optimizer_monitor.h"
#include "training/callbacks/monitors/runtime_estimator.h"
#include "training/callbacks/monitors/speed_monitor.h"
#include "training/callbacks/monitors/system_metrics.h"
#include "training/callbacks/samples/generate.h"
#include "training/callbacks/samples/image_visualizer.h"
#include "training/callbacks/stoppers/stoppers.h"
#include "training/callbacks/writers/export_for_inference.h"
#include "training/callbacks/writers/memory_files.h"
#include "training/callbacks/writers/mlperf.h"

namespace tutti {

CallbackPtr ActivationMonitorOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<ActivationMonitor>(interval, ignore_module_types);
}

CallbackPtr LrMonitorOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<LrMonitor>();
}

CallbackPtr MemoryMonitorOptions::make(const Setting&, const CallbackEnvironment&) const {
  if (!memory_keys) return std::make_shared<MemoryMonitor>();
  return std::make_shared<MemoryMonitor>(MemoryMonitor::keys_of(*memory_keys));
}

CallbackPtr OptimizerMonitorOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<OptimizerMonitor>(log_optimizer_metrics, batch_log_interval);
}

CallbackPtr RuntimeEstimatorOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<RuntimeEstimator>(skip_batches, time_unit);
}

CallbackPtr SpeedMonitorOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<SpeedMonitor>(*this);
}

CallbackPtr SystemMetricsMonitorOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<SystemMetricsMonitor>();
}

CallbackPtr GenerateOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<Generate>(interval,
                                    Generate::Options{.prompts = prompts,
                                                      .batch_size = batch_size,
                                                      .generation = {.max_new_tokens = max_new_tokens,
                                                                     .do_sample = do_sample,
                                                                     .temperature = temperature,
                                                                     .top_k = top_k,
                                                                     .top_p = top_p}});
}

CallbackPtr ImageVisualizerOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<ImageVisualizer>(
      interval, ImageVisualizer::Options{segmentation, num_images, channels_last, input_key, target_key});
}

CallbackPtr EarlyStopperOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<EarlyStopper>(WatchedMetric(*this), min_delta, patience);
}

CallbackPtr NaNMonitorOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<NaNMonitor>();
}

CallbackPtr ThresholdStopperOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<ThresholdStopper>(WatchedMetric(*this), threshold, stop_on_batch);
}

CallbackPtr ExportForInferenceOptions::make(const Setting&, const CallbackEnvironment& environment) const {
  return std::make_shared<ExportForInference>(environment.disk, save_path, interval);
}

CallbackPtr FreeOutputsOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<FreeOutputs>();
}

CallbackPtr MemorySnapshotOptions::make(const Setting&, const CallbackEnvironment& environment) const {
  return std::make_shared<MemorySnapshot>(environment.disk, *this, interval, skip_batches);
}

CallbackPtr OomObserverOptions::make(const Setting&, const CallbackEnvironment& environment) const {
  return std::make_shared<OomObserver>(environment.disk, *this);
}

CallbackPtr MLPerfOptions::make(const Setting&, const CallbackEnvironment& environment) const {
  return std::make_shared<MLPerfCallback>(
      environment.disk, environment.recorder, [clock = SystemClock()] { return clock.unix_ms(); }, *this);
}

std::shared_ptr<Callback> make_callback(const Setting& section, const CallbackEnvironment& environment) {
  return CallbackKinds::made<CallbackPtr>(section, environment);
}

Callbacks make_callbacks(const Setting& recipe, const CallbackEnvironment& environment) {
  Callbacks callbacks;
  if (!recipe.has("callbacks")) return callbacks;
  for (const Setting& section : recipe.at("callbacks").array())
    if (auto made = make_callback(section, environment)) callbacks.push_back(std::move(made));
  return callbacks;
}

}  // namespace tutti
