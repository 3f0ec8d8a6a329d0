#include "job/plugin_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "recipe/catalog.h"
#include "recipe/plugin_maker.h"
#include "recipe/resolve.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"
#include "runtime/process/this_process.h"
#include "runtime/user_errors.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"

namespace tutti {
namespace {

template <class Function>
Function* symbol(void* library, const char* name, const Setting& path) {
  auto* function = reinterpret_cast<Function*>(dlsym(library, name));
  if (!function) path.fail(std::string("is no plugin of tutti: it does not define ") + name);
  return function;
}

void require_this_build(const std::string& theirs, const Setting& path) {
  const std::string own = build_stamp("a program of its own");
  if (theirs != own) path.fail("it was built for " + theirs + "; this is " + own);
}

const std::string& name_of(const Setting& section) { return section.at("name").text(); }

template <class Makers>
const auto& maker(const Makers& makers, const Setting& section, const char* what) {
  const auto maker = makers.find(name_of(section));
  if (maker != makers.end()) return maker->second;
  std::vector<std::string> names;
  for (const auto& [name, make] : makers) names.push_back(name);
  const std::string near = nearest_name(name_of(section), names);
  section.at("name").fail(std::string("the library of [plugins] has no such ") + what +
                          (names.empty()  ? ""
                           : near.empty() ? "; there are " + joined(names)
                                          : "; did you mean " + near + "?"));
}

const Setting* needs_library(const Setting& setting) {
  if (setting.is_array()) {
    for (const auto& item : setting.array())
      if (const Setting* needing = needs_library(item)) return needing;
  } else if (setting.is_table()) {
    const Setting* kind = setting.find("kind");
    if (kind && kind->is_text() && kind->text() == kPluginKind) return kind;
    for (const auto& [name, member] : setting.table())
      if (const Setting* needing = needs_library(member)) return needing;
  }
  return nullptr;
}

// What a maker of the library makes. Errors name the component, but for a lack of memory.
template <class Make>
auto made(const Setting& section, const Make& make) {
  try {
    if (auto component = make()) return component;
  } catch (const RunError&) {
    throw;
  } catch (const std::exception& error) {
    if (is_lack_of_memory(error)) throw;
    section.at("name").fail("it cannot be made: " + one_line(error));
  } catch (...) {
    section.at("name").fail("it cannot be made: the library throws what is no std::exception");
  }
  section.at("name").fail("it cannot be made: the library's function returns null");
}

// The maker of a section for this function of the library.
template <class Made, class... Arguments>
std::shared_ptr<const PluginMaker> plugin_maker(
    const std::function<Made(const Setting& options, Arguments...)>& make) {
  using Maker = PluginMakerOf<Made, std::remove_cvref_t<Arguments>...>;
  return std::make_shared<const Maker>([make](const Setting& section, const auto&... arguments) {
    return made(section, [&] { return make(section.at("options"), arguments...); });
  });
}

// The tables of a list; none if there is no list.
std::vector<Setting*> tables_in(Setting* list) {
  std::vector<Setting*> tables;
  if (list && list->is_array())
    for (Setting& item : std::get<Setting::Array>(list->value))
      if (item.is_table()) tables.push_back(&item);
  return tables;
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

PluginLibrary::PluginLibrary(const Setting& path, std::string recipe_folder)
    : folder_(std::move(recipe_folder)) {
  void* library = dlopen(path.text().c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) path.fail(dlerror());
  require_this_build(symbol<const char*()>(library, "tutti_plugin_build_stamp", path)(), path);
  symbol<void(Plugin&)>(library, "tutti_plugin", path)(plugin_);
}

Setting PluginLibrary::resolved_options(const Plugin::Keys& keys, const Setting& section) const {
  const Setting& written = section.at("options");
  const auto declared = keys.find(name_of(section));
  if (declared == keys.end()) return written;
  const std::string path = path_below(section.path, "options");
  const Catalog catalog{.section = path, .noun = "", .doc = "", .keys = declared->second};
  const Setting none(Setting::Table{}, path, section.position);
  return resolve_section(catalog, written.is_none() ? none : written, {.folder = folder_});
}

void PluginLibrary::resolve_options(Setting& recipe) const {
  MistakeCollector mistakes;
  const auto resolve_one = [&](const auto& makers, const Plugin::Keys& keys, Setting* section,
                               const char* what) {
    if (!section || !section->is_table() || !is_of_plugin(*section)) return;
    mistakes.collect([&] {
      const auto& make = maker(makers, *section, what);
      *section->find("options") = resolved_options(keys, *section);
      section->find("kind")->maker = plugin_maker(make);
    });
  };
  const auto resolve_all = [&](const auto& makers, const Plugin::Keys& keys, Setting* list,
                               const char* what) {
    for (Setting* section : tables_in(list)) resolve_one(makers, keys, section, what);
  };
  const auto resolve_losses_of = [&](Setting* list) {
    for (Setting* section : tables_in(list))
      resolve_one(plugin_.losses, plugin_.keys.losses, section->find("loss"), "loss");
  };
  const auto resolve_data = [&](Setting* section) {
    if (!section->is_table()) return;
    resolve_one(plugin_.datasets, plugin_.keys.datasets, section, "dataset");
    resolve_all(plugin_.transforms, plugin_.keys.transforms, section->find("transforms"), "transform");
    resolve_all(plugin_.metrics, plugin_.keys.metrics, section->find("metrics"), "metric");
    resolve_losses_of(section->find("metrics"));
  };
  Setting* const model = recipe.find("model");
  resolve_one(plugin_.models, plugin_.keys.models, model, "model");
  resolve_one(plugin_.losses, plugin_.keys.losses, model->find("loss"), "loss");
  resolve_losses_of(model->find("losses"));
  for (const char* part : {"train", "eval"}) resolve_data(recipe.find("data")->find(part));
  for (Setting* evaluator : tables_in(recipe.find("evaluators"))) resolve_data(evaluator);
  resolve_one(plugin_.optimizers, plugin_.keys.optimizers, recipe.find("optimizer"), "optimizer");
  resolve_one(plugin_.schedules, plugin_.keys.schedules, recipe.find("scheduler"), "schedule");
  resolve_all(plugin_.algorithms, plugin_.keys.algorithms, recipe.find("algorithms"), "algorithm");
  resolve_all(plugin_.callbacks, plugin_.keys.callbacks, recipe.find("callbacks"), "callback");
  resolve_all(plugin_.loggers, plugin_.keys.loggers, recipe.find("loggers"), "logger");
  mistakes.throw_all();
}

std::shared_ptr<Model> PluginLibrary::model(const Setting& section, const SampleSpec& samples) const {
  const auto& make = maker(plugin_.models, section, "model");
  return made(section, [&] { return make(resolved_options(plugin_.keys.models, section), samples); });
}

DatasetPtr PluginLibrary::dataset(const Setting& section) const {
  const auto& make = maker(plugin_.datasets, section, "dataset");
  return made(section, [&] { return make(resolved_options(plugin_.keys.datasets, section)); });
}

std::shared_ptr<Algorithm> PluginLibrary::algorithm(const Setting& section) const {
  const auto& make = maker(plugin_.algorithms, section, "algorithm");
  return made(section, [&] { return make(resolved_options(plugin_.keys.algorithms, section)); });
}

void PluginLibrary::add_listeners(const Setting& recipe, bool live, Engine::Options& listeners) const {
  const auto make_all = [&](const auto& makers, const Plugin::Keys& keys, const char* list, const char* what,
                            const auto& add) {
    for (const auto& section : recipe.at(list).array()) {
      if (!is_of_plugin(section)) continue;
      const auto& make = maker(makers, section, what);
      add(made(section, [&] { return make(resolved_options(keys, section)); }));
    }
  };
  make_all(plugin_.callbacks, plugin_.keys.callbacks, "callbacks", "callback",
           [&](auto callback) { listeners.callbacks.push_back(std::move(callback)); });
  make_all(plugin_.loggers, plugin_.keys.loggers, "loggers", "logger", [&](auto logger) {
    if (!live) logger = std::make_shared<SilentLogger>(*logger);
    listeners.destinations.push_back(std::move(logger));
  });
}

PluginLibraryPtr load_plugin(Setting& recipe) {
  const Setting& library = PluginSettings::kind().read(recipe.at("plugins")).library;
  if (!library.is_none()) {
    const auto folder = std::filesystem::absolute(recipe.position.file).parent_path();
    auto plugin = std::make_shared<const PluginLibrary>(library, folder.string());
    plugin->resolve_options(recipe);
    return plugin;
  }
  if (const Setting* kind = needs_library(recipe)) kind->fail("the recipe names no [plugins] library");
  return nullptr;
}

}  // namespace tutti
