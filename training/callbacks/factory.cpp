#include "training/callbacks/factory.h"

#include <map>

#include "training/callbacks/lr_monitor.h"

namespace tutti {
namespace {

using Maker = std::shared_ptr<Callback> (*)(const Setting& section);

const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> all = {
      {"lr_monitor",
       [](const Setting&) -> std::shared_ptr<Callback> { return std::make_shared<LrMonitor>(); }},
  };
  return all;
}

}  // namespace

Callbacks make_callbacks(const Setting& recipe) {
  Callbacks callbacks;
  if (!recipe.has("callbacks")) return callbacks;
  for (const Setting& section : recipe.at("callbacks").array())
    callbacks.push_back(makers().at(section.at("kind").text())(section));
  return callbacks;
}

}  // namespace tutti
