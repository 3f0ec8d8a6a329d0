#include "training/callbacks/factory.h"

#include "training/callbacks/options.h"

namespace tutti {

std::shared_ptr<Callback> make_callback(const Setting& section, const CallbackEnvironment& environment) {
  return CallbackKinds::made<CallbackPtr>(section, environment);
}

Callbacks make_callbacks(const Setting& recipe, const CallbackEnvironment& environment) {
  Callbacks callbacks;
  if (recipe.has("profiler"))
    callbacks.push_back(ProfilerOptions::kind().read(recipe.at("profiler")).make(environment));
  if (!recipe.has("callbacks")) return callbacks;
  const CallbackEnvironment with_model{environment.disk, recipe.at("model")};
  for (const Setting& section : recipe.at("callbacks").array())
    if (auto made = make_callback(section, with_model)) callbacks.push_back(std::move(made));
  return callbacks;
}

}  // namespace tutti
