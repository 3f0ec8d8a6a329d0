#pragma once

#include <memory>
#include <string>
#include <utility>

#include "job/plugin.h"
#include "recipe/catalog.h"
#include "training/engine/engine.h"

namespace tutti {

// A loaded plugin; never unloaded. All functions throw UserError if the library has no component of the name,
// or the component refuses its options.
class PluginLibrary {
 public:
  // Throws UserError with the key `path` if the library is not a plugin for this build.
  PluginLibrary(const Setting& path, std::string recipe_folder);
  // Of components that are here already; for tests.
  PluginLibrary(Plugin plugin, std::string recipe_folder)
      : folder_(std::move(recipe_folder)), plugin_(std::move(plugin)) {}

  // Resolves the options of all plugins in the recipe whose keys the library declares, in place, and gives
  // their sections makers (recipe/plugin_maker.h). Throws UserErrors.
  void resolve_options(Setting& recipe) const;

  std::shared_ptr<Model> model(const Setting& section, const SampleSpec& samples) const;
  DatasetPtr dataset(const Setting& section) const;
  std::shared_ptr<Algorithm> algorithm(const Setting& section) const;
  // Appends the plugin's [[callbacks]] and [[loggers]]. If the run is replayed or simulated (not `live`),
  // loggers are replaced by silent loggers.
  void add_listeners(const Setting& recipe, bool live, Engine::Options& listeners) const;

 private:
  Setting resolved_options(const Plugin::Keys& keys, const Setting& section) const;

  std::string folder_;  // of the recipe
  Plugin plugin_;
};
using PluginLibraryPtr = std::shared_ptr<const PluginLibrary>;

// Null if the recipe names no library. Resolves the options of the recipe's plugins. Throws UserError if the
// recipe needs a library and names none.
PluginLibraryPtr load_plugin(Setting& recipe);

}  // namespace tutti
