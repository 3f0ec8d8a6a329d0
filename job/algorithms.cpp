#include "job/algorithms.h"

#include "algorithms/factory.h"

namespace tutti {

Algorithms make_algorithms(const Setting& recipe, const PluginLibraryPtr& plugin) {
  Algorithms algorithms;
  for (const auto& section : recipe.at("algorithms").array()) {
    const bool is_plugin = section.at("kind").text() == kPluginKind;
    algorithms.push_back(is_plugin ? plugin->algorithm(section) : make_algorithm(section));
  }
  return algorithms;
}

}  // namespace tutti
