#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "models/model.h"
#include "recipe/catalog.h"
#include "recipe/setting.h"
#include "training/engine/algorithm.h"
#include "training/engine/callback.h"
#include "training/loggers/logger_destination.h"

namespace tutti {

// The components of a shared library that recipes name as [plugins] library. Recipes use a component by
// kind = "plugin" and its name; `options` is a table (or none) that only the library interprets.
//
// The library links tutti::tutti (find_package) and defines two C functions: tutti_plugin_build_stamp returns
// TUTTI_BUILD_STAMP, tutti_plugin fills a Plugin. An example: examples/cpp/plugin.cpp. Every rank, and every
// process that checks, resumes or replays the run, loads the library. tutti ends without destroying static
// objects, the library's too: what has to be written at the end is written in Callback::close.
struct Plugin {
  template <class Component, class... Arguments>
  using Makers =
      std::map<std::string, std::function<std::shared_ptr<Component>(const Setting& options, Arguments...)>>;

  Makers<Model, const SampleSpec&> models;
  Makers<const Dataset> datasets;
  Makers<Algorithm> algorithms;
  Makers<Callback> callbacks;
  Makers<LoggerDestination> loggers;  // may use the outside from open() on; replays never call open()

  // The keys of the options of a component, by its name. Options are then checked and completed as other keys
  // of a recipe are, those of `--set` too. Without: as written.
  //
  // A path needs a key of KeyType::kPath: it is then relative to the recipe, and absolute in the recipe.toml
  // of the run, which `tutti replay` reads from another folder.
  using Keys = std::map<std::string, std::vector<Key>>;
  struct {
    Keys models, datasets, algorithms, callbacks, loggers;
  } keys;
};

}  // namespace tutti

extern "C" {
const char* tutti_plugin_build_stamp();
void tutti_plugin(tutti::Plugin& plugin);
}
