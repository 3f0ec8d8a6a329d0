#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/transforms/transform.h"
#include "models/loss.h"
#include "models/metric.h"
#include "models/model.h"
#include "recipe/catalog.h"
#include "recipe/setting.h"
#include "training/engine/algorithm.h"
#include "training/engine/callback.h"
#include "training/loggers/logger_destination.h"
#include "training/metrics/options.h"
#include "training/optimizers/optimizer.h"
#include "training/optimizers/options.h"
#include "training/schedules/schedule.h"

namespace tutti {

// The components of a shared library that recipes name as [plugins] library. Recipes use a component by
// kind = "plugin" and its name; `options` is a table (or none) that only the library interprets.
//
// The library links tutti::tutti (find_package) and defines two C functions: tutti_plugin_build_stamp returns
// TUTTI_BUILD_STAMP, tutti_plugin fills a Plugin. An example: examples/cpp/plugin.cpp. Every rank, and every
// process that checks, resumes or replays the run, loads the library. tutti ends without destroying static
// objects, the library's too: write the last data in Callback::close.
struct Plugin {
  template <class Made, class... Arguments>
  using MakersOf = std::map<std::string, std::function<Made(const Setting& options, Arguments...)>>;
  template <class Component, class... Arguments>
  using Makers = MakersOf<std::shared_ptr<Component>, Arguments...>;

  Makers<Model, const SampleSpec&> models;
  Makers<const Dataset> datasets;
  Makers<Algorithm> algorithms;
  Makers<Callback> callbacks;
  Makers<LoggerDestination> loggers;  // may use the outside from open() on; replays never call open()

  // Of [model] loss and the metric LossMetric.
  MakersOf<LossPtr> losses;
  // Of the `metrics` of [data.eval] and [[evaluators]], named by Metric::name, or the key measured_name.
  MakersOf<MetricPtr> metrics;
  // Of [[data.train.transforms]] and the like, for samples of this layout. Errors are TransformErrors with a
  // key of the options.
  MakersOf<TransformPtr, const SampleSpec&> transforms;
  // Of [optimizer]. Views and no_decay are the first and part of the second argument of Optimizer's
  // constructor; `lr` is an option like any other, available as Common::lr. State is saved and restored by
  // the names of add_state.
  MakersOf<OptimizerPtr, const std::vector<ParamView>& /*views*/,
           const std::vector<std::string>& /*no_decay*/>
      optimizers;
  // Of [scheduler]. The schedule must depend on the time alone. ScheduleReader reads times of the options.
  MakersOf<Schedule, const Horizon&> schedules;

  // The keys of the options of a component, by its name. Options are then checked and completed as other keys
  // of a recipe, options of `--set` too. Without: as written.
  //
  // A path needs a key of KeyType::kPath: the path is then relative to the recipe, and absolute in the
  // recipe.toml of the run, which `tutti replay` reads from another folder.
  using Keys = std::map<std::string, std::vector<Key>>;
  struct {
    Keys models, datasets, algorithms, callbacks, loggers;
    Keys losses, metrics, transforms, optimizers, schedules;
  } keys;
};

}  // namespace tutti

extern "C" {
const char* tutti_plugin_build_stamp();
void tutti_plugin(tutti::Plugin& plugin);
}
