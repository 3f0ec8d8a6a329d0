#include "job/algorithms.h"

#include <algorithm>
#include <utility>

#include "algorithms/catalog.h"
#include "algorithms/loop/unfreezing.h"
#include "io/checkpoint/saved_state.h"
#include "recipe/plugin_maker.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "runtime/user_errors.h"
#include "tensors/memory/torch_error.h"

namespace tutti {
namespace {

constexpr const char* kSection = "algorithms";

// An algorithm and its settings as RequiredAlgorithm has them.
struct Known {
  std::shared_ptr<Algorithm> algorithm;
  std::string settings;
  bool is_recorded = false;  // the checkpoint has it too
};

std::string settings_text(const Setting& section) {
  Setting::Array sections{section};
  Setting::Table recipe{{kSection, Setting(std::move(sections), kSection, section.position)}};
  return write_recipe(Setting(std::move(recipe), "", section.position));
}

std::vector<Known> known_algorithms(const Algorithms& algorithms, const Setting& recipe) {
  std::vector<Known> known;
  for (const auto& algorithm : algorithms) known.push_back({.algorithm = algorithm, .settings = ""});
  const Setting::Array& sections = recipe.at(kSection).array();
  TUTTI_ASSERT(sections.size() <= known.size(), "the recipe has algorithms that were not made");
  const std::size_t program_count = known.size() - sections.size();
  for (std::size_t i = 0; i < sections.size(); ++i)
    known[program_count + i].settings = settings_text(sections[i]);
  return known;
}

std::shared_ptr<Algorithm> make_required(const RequiredAlgorithm& required, const Job& job,
                                         const std::string& folder) try {
  if (required.settings.empty()) throw UserError("the program of that run has it");
  const Setting section = resolve_section(algorithm_catalog(), required.section(folder), {.folder = folder});
  if (is_of_plugin(section) && !job.plugin)
    throw UserError("it is of a plugin that the recipe does not name; add [plugins] with its library");
  return job.make_algorithm(section);
} catch (const std::exception& error) {
  throw_run_error(
      error, folder + ": the weights need the algorithm " + required.name + ", which cannot be applied: ");
}

std::string added_text(const RequiredAlgorithm& required, const std::string& folder) {
  return folder + ": it was trained with " + required.name +
         ", which is not in the recipe; it is applied, since the weights need it (load_exclude_algorithms = "
         "[\"" +
         required.name + "\"] leaves it out)";
}

}  // namespace

namespace {

void require_parameters_on_device(const Job& job, const Setting& section) {
  const bool offloads = job.devices && job.world > 1 && job.settings.sharding.offloads_parameters;
  if (!offloads || section.at("kind").text() != "sam") return;
  job.settings.sharding.offload.fail(
      section.path + " (" + section.position.text() +
      ") is SAM, which changes parameters on the device; expected \"optimizer\" in place of "
      "\"parameters\"");
}

}  // namespace

// A reference that is absent is the model that the run starts from.
Setting with_reference(Setting section, const Job& job) {
  Setting* reference = section.at("kind").text() == "dpo" ? section.find("reference") : nullptr;
  if (!reference || !reference->is_none()) return section;
  const bool starts_from_run = !job.from.load_path.is_none() && job.from.options.weights_only;
  *reference = starts_from_run ? job.from.load_path : job.recipe.at("model");
  return section;
}

Algorithms make_algorithms(const Job& job) {
  Algorithms algorithms;
  MistakeCollector mistakes;
  if (const Setting unfreeze = ModelKeys::kind().read(job.recipe.at("model")).unfreeze; !unfreeze.is_none())
    algorithms.push_back(std::make_shared<Unfreezing>(unfreeze));
  for (const auto& section : job.recipe.at(kSection).array())
    mistakes.collect([&] {
      require_parameters_on_device(job, section);
      algorithms.push_back(job.make_algorithm(with_reference(section, job)));
    });
  mistakes.throw_all();
  return algorithms;
}

std::vector<RequiredAlgorithm> add_required_algorithms(Algorithms& algorithms, const Job& job,
                                                       const Checkpoint& from, const LoadOptions& load,
                                                       const Warn& warn) {
  std::vector<Known> known = known_algorithms(algorithms, job.recipe);
  std::vector<RequiredAlgorithm> recorded;
  if (!from.manifest.state.empty()) recorded = state_of(from).required_algorithms;
  auto next = known.size();  // the place of the algorithm that comes after
  std::vector<std::string> warnings;
  for (auto required = recorded.rbegin(); required != recorded.rend(); ++required) {
    const auto same = [&](const Known& other) {
      return !other.is_recorded && other.algorithm->name() == required->name;
    };
    const auto present = std::find_if(known.rbegin(), known.rend(), same);
    if (present != known.rend()) {
      next = static_cast<std::size_t>(known.rend() - present) - 1;
      present->is_recorded = true;
      if (present->settings != required->settings && !present->settings.empty())
        warnings.push_back(from.folder + ": it was trained with other settings of " + required->name +
                           " than the recipe's, which are used");
    } else if (!load.ignores(std::string(kSection) + '/' + required->name)) {
      known.insert(known.begin() + static_cast<std::ptrdiff_t>(next),
                   {make_required(*required, job, from.folder), required->settings, true});
      warnings.push_back(added_text(*required, from.folder));
    }
  }
  if (warn) std::for_each(warnings.rbegin(), warnings.rend(), warn);
  algorithms.clear();
  std::vector<RequiredAlgorithm> required;
  for (const Known& entry : known) {
    algorithms.push_back(entry.algorithm);
    if (entry.algorithm->needs().required_on_load)
      required.push_back({entry.algorithm->name(), entry.settings});
  }
  return required;
}

}  // namespace tutti
