#include "training/callbacks/factory.h"

#include <map>

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
namespace {

using CallbackPtr = std::shared_ptr<Callback>;
using CallbackMaker = CallbackPtr (*)(const Setting& section, const CallbackEnvironment& environment);

template <class Kind>
CallbackPtr make(const Setting&, const CallbackEnvironment&) {
  return std::make_shared<Kind>();
}

CallbackPtr speed_monitor(const Setting& section, const CallbackEnvironment&) {
  SpeedMonitor::Options options{section.at("window_size").integer(), 0.0, section.at("time_unit").text()};
  if (section.has("gpu_flops_available"))
    options.gpu_flops_available = section.at("gpu_flops_available").number();
  return std::make_shared<SpeedMonitor>(options);
}

CallbackPtr memory_monitor(const Setting& section, const CallbackEnvironment&) {
  if (!section.has("memory_keys")) return std::make_shared<MemoryMonitor>();
  return std::make_shared<MemoryMonitor>(MemoryMonitor::keys_of(section.at("memory_keys")));
}

CallbackPtr optimizer_monitor(const Setting& section, const CallbackEnvironment&) {
  return std::make_shared<OptimizerMonitor>(section.at("log_optimizer_metrics").boolean(),
                                            section.at("batch_log_interval").integer());
}

CallbackPtr activation_monitor(const Setting& section, const CallbackEnvironment&) {
  return std::make_shared<ActivationMonitor>(Time::parse(section.at("interval")),
                                             section.at("ignore_module_types").texts());
}

CallbackPtr runtime_estimator(const Setting& section, const CallbackEnvironment&) {
  return std::make_shared<RuntimeEstimator>(section.at("skip_batches").integer(),
                                            section.at("time_unit").text());
}

WatchedMetric watched(const Setting& section) {
  return WatchedMetric({section.at("monitor"), section.at("dataloader_label").text(),
                        section.has("comp") ? section.at("comp").text() : ""});
}

CallbackPtr early_stopper(const Setting& section, const CallbackEnvironment&) {
  return std::make_shared<EarlyStopper>(watched(section), section.at("min_delta").number(),
                                        Time::parse(section.at("patience")));
}

CallbackPtr threshold_stopper(const Setting& section, const CallbackEnvironment&) {
  return std::make_shared<ThresholdStopper>(watched(section), section.at("threshold").number(),
                                            section.at("stop_on_batch").boolean());
}

MemoryFile memory_file(const Setting& section) {
  return {section.at("folder").text(), section.at("filename").text(), section.at("overwrite").boolean()};
}

CallbackPtr oom_observer(const Setting& section, const CallbackEnvironment& environment) {
  return std::make_shared<OomObserver>(environment.disk, memory_file(section));
}

CallbackPtr memory_snapshot(const Setting& section, const CallbackEnvironment& environment) {
  return std::make_shared<MemorySnapshot>(environment.disk, memory_file(section),
                                          Time::parse(section.at("interval")),
                                          section.at("skip_batches").integer());
}

CallbackPtr export_for_inference(const Setting& section, const CallbackEnvironment& environment) {
  return std::make_shared<ExportForInference>(environment.disk, section.at("save_path").text(),
                                              Time::parse(section.at("interval")));
}

CallbackPtr generate(const Setting& section, const CallbackEnvironment&) {
  Generate::Options options{section.at("prompts")};
  if (section.has("batch_size")) options.batch_size = section.at("batch_size").integer();
  options.generation = {.max_new_tokens = section.at("max_new_tokens").integer(),
                        .do_sample = section.at("do_sample").boolean(),
                        .temperature = section.at("temperature").number(),
                        .top_k = section.at("top_k").integer(),
                        .top_p = section.at("top_p").number()};
  return std::make_shared<Generate>(Time::parse(section.at("interval")), std::move(options));
}

CallbackPtr image_visualizer(const Setting& section, const CallbackEnvironment&) {
  return std::make_shared<ImageVisualizer>(
      Time::parse(section.at("interval")),
      ImageVisualizer::Options{section.at("mode").text() == "segmentation",
                               section.at("num_images").integer(), section.at("channels_last").boolean(),
                               section.at("input_key"), section.at("target_key")});
}

CallbackPtr mlperf_callback(const Setting& section, const CallbackEnvironment& environment) {
  MLPerfCallback::Options options;
  options.root_folder = section.at("root_folder").text();
  options.index = section.at("index").integer();
  options.benchmark = section.at("benchmark").text();
  options.target = section.at("target").number();
  options.division = section.at("division").text();
  options.metric_name = section.at("metric_name");
  options.metric_label = section.at("metric_label").text();
  options.submitter = section.at("submitter").text();
  options.status = section.at("status").text();
  options.exit_at_target = section.at("exit_at_target").boolean();
  options.exist_ok = section.at("exist_ok").boolean();
  if (section.has("host_processors_per_node"))
    options.host_processors_per_node = section.at("host_processors_per_node").integer();
  if (section.has("system_name")) options.system_name = section.at("system_name").text();
  return std::make_shared<MLPerfCallback>(
      environment.disk, environment.recorder, [clock = SystemClock()] { return clock.unix_ms(); }, options);
}

const std::map<std::string, CallbackMaker>& callback_makers() {
  static const std::map<std::string, CallbackMaker> all = {
      {"activation_monitor", activation_monitor},
      {"early_stopper", early_stopper},
      {"export_for_inference", export_for_inference},
      {"free_outputs", make<FreeOutputs>},
      {"generate", generate},
      {"image_visualizer", image_visualizer},
      {"lr_monitor", make<LrMonitor>},
      {"memory_monitor", memory_monitor},
      {"memory_snapshot", memory_snapshot},
      {"mlperf_callback", mlperf_callback},
      {"nan_monitor", make<NaNMonitor>},
      {"oom_observer", oom_observer},
      {"optimizer_monitor", optimizer_monitor},
      {"runtime_estimator", runtime_estimator},
      {"speed_monitor", speed_monitor},
      {"system_metrics_monitor", make<SystemMetricsMonitor>},
      {"threshold_stopper", threshold_stopper},
  };
  return all;
}

}  // namespace

std::shared_ptr<Callback> make_callback(const Setting& section, const CallbackEnvironment& environment) {
  return callback_makers().at(section.at("kind").text())(section, environment);
}

Callbacks make_callbacks(const Setting& recipe, const CallbackEnvironment& environment) {
  Callbacks callbacks;
  if (!recipe.has("callbacks")) return callbacks;
  for (const Setting& section : recipe.at("callbacks").array())
    if (callback_makers().contains(section.at("kind").text()))
      callbacks.push_back(make_callback(section, environment));
  return callbacks;
}

}  // namespace tutti
