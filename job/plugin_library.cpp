#include "job/plugin_library.h"

#include <dlfcn.h>

#include <vector>

#include "algorithms/factory.h"
#include "recipe/catalog.h"
#include "runtime/error.h"
#include "runtime/process/this_process.h"

namespace tutti {
namespace {

template <class Function>
Function* symbol(void* library, const char* name, const Setting& path) {
  auto* found = reinterpret_cast<Function*>(dlsym(library, name));
  if (!found) path.fail(std::string("is no plugin of tutti: it does not define ") + name);
  return found;
}

void require_this_build(const std::string& theirs, const Setting& path) {
  const std::string own = build_stamp("a program of its own");
  if (theirs != own) path.fail("it was built for " + theirs + "; this is " + own);
}

const std::string& name_of(const Setting& section) { return section.at("name").text(); }

template <class Makers>
const auto& maker(const Makers& makers, const Setting& section, const char* what) {
  const auto found = makers.find(name_of(section));
  if (found != makers.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, make] : makers) names.push_back(name);
  section.at("name").fail(std::string("the library of [plugins] has no such ") + what +
                          (names.empty() ? "" : "; there are " + joined(names)));
}

const Setting* needs_library(const Setting& setting) {
  if (setting.is_array()) {
    for (const auto& item : setting.array())
      if (const Setting* found = needs_library(item)) return found;
  } else if (setting.is_table()) {
    const Setting* kind = setting.find("kind");
    if (kind && kind->is_text() && kind->text() == kPluginKind) return kind;
    for (const auto& [name, member] : setting.table())
      if (const Setting* found = needs_library(member)) return found;
  }
  return nullptr;
}

// In place of a logger in a replay.
class SilentLogger final : public LoggerDestination {
 public:
  explicit SilentLogger(const LoggerDestination& other)
      : name_(other.name()), rank_zero_only_(other.rank_zero_only()), durable_(other.durable()) {}

  std::string name() const override { return name_; }
  bool rank_zero_only() const override { return rank_zero_only_; }
  bool durable() const override { return durable_; }

 private:
  std::string name_;
  bool rank_zero_only_, durable_;
};

}  // namespace

PluginLibrary::PluginLibrary(const Setting& path) : path_(path) {
  void* library = dlopen(path.text().c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) path.fail(dlerror());
  require_this_build(symbol<const char*()>(library, "tutti_plugin_build_stamp", path)(), path);
  symbol<void(Plugin&)>(library, "tutti_plugin", path)(plugin_);
}

std::shared_ptr<Model> PluginLibrary::model(const Setting& section, const SampleSpec& samples) const {
  return maker(plugin_.models, section, "model")(section.at("options"), samples);
}

DatasetPtr PluginLibrary::dataset(const Setting& section) const {
  return maker(plugin_.datasets, section, "dataset")(section.at("options"));
}

std::shared_ptr<Algorithm> PluginLibrary::algorithm(const Setting& section) const {
  return maker(plugin_.algorithms, section, "algorithm")(section.at("options"));
}

void PluginLibrary::add_listeners(const Setting& recipe, bool live, Engine::Options& listeners) const {
  for (const auto& section : recipe.at("callbacks").array())
    if (section.at("kind").text() == kPluginKind)
      listeners.callbacks.push_back(maker(plugin_.callbacks, section, "callback")(section.at("options")));
  for (const auto& section : recipe.at("loggers").array()) {
    if (section.at("kind").text() != kPluginKind) continue;
    auto logger = maker(plugin_.loggers, section, "logger")(section.at("options"));
    if (!live) logger = std::make_shared<SilentLogger>(*logger);
    listeners.destinations.push_back(std::move(logger));
  }
}

PluginLibraryPtr load_plugin(const Setting& recipe) {
  const Setting& library = recipe.at("plugins").at("library");
  if (!library.is_none()) return std::make_shared<const PluginLibrary>(library);
  if (const Setting* kind = needs_library(recipe)) kind->fail("the recipe names no [plugins] library");
  return nullptr;
}

Algorithms make_algorithms(const Setting& recipe, const PluginLibraryPtr& plugin) {
  Algorithms algorithms;
  for (const auto& section : recipe.at("algorithms").array()) {
    const bool is_plugin = section.at("kind").text() == kPluginKind;
    algorithms.push_back(is_plugin ? plugin->algorithm(section) : make_algorithm(section));
    algorithms.back()->set_section(section);
  }
  return algorithms;
}

}  // namespace tutti
