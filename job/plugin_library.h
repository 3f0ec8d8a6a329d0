#pragma once

#include <memory>

#include "job/plugin.h"
#include "recipe/catalog.h"
#include "training/engine/engine.h"

namespace tutti {

// A plugin that was loaded, for good. Each of these throws UserError where the library has nothing of that
// name, or refuses.
class PluginLibrary {
 public:
  // Throws UserError that blames `path` where it is no plugin of this build.
  explicit PluginLibrary(const Setting& path);

  std::shared_ptr<Model> model(const Setting& section, const SampleSpec& samples) const;
  DatasetPtr dataset(const Setting& section) const;
  std::shared_ptr<Algorithm> algorithm(const Setting& section) const;
  // Appends what [[callbacks]] and [[loggers]] call by kind = "plugin". Where a run is not `live` but
  // replayed or simulated, loggers stand there and are told nothing.
  void add_listeners(const Setting& recipe, bool live, Engine::Options& listeners) const;

 private:
  Setting path_;
  Plugin plugin_;
};
using PluginLibraryPtr = std::shared_ptr<const PluginLibrary>;

// Null where the recipe names none. Throws UserError where it names none but needs one.
PluginLibraryPtr load_plugin(const Setting& recipe);

}  // namespace tutti
