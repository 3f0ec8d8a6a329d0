#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "models/model.h"
#include "recipe/setting.h"
#include "training/engine/algorithm.h"
#include "training/engine/callback.h"
#include "training/loggers/logger_destination.h"

namespace tutti {

// What a shared library brings to the recipes that name it as [plugins] library: things that these call by
// kind = "plugin" and their name, with `options`, a table (or none) that is the library's own affair.
//
// Such a library links tutti::tutti (find_package) and defines two C functions, tutti_plugin_build_stamp,
// which returns TUTTI_BUILD_STAMP, and tutti_plugin, which fills in a Plugin; examples/cpp/plugin.cpp is one.
// Every rank, and every process that checks, resumes or replays the run, loads it.
struct Plugin {
  template <class Thing, class... Given>
  using Makers =
      std::map<std::string, std::function<std::shared_ptr<Thing>(const Setting& options, Given...)>>;

  Makers<Model, const SampleSpec&> models;
  Makers<const Dataset> datasets;
  Makers<Algorithm> algorithms;
  Makers<Callback> callbacks;
  Makers<LoggerDestination> loggers;  // which touch the outside from open() on; replays never call that
};

}  // namespace tutti

extern "C" {
const char* tutti_plugin_build_stamp();
void tutti_plugin(tutti::Plugin& plugin);
}
