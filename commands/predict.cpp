#include "commands/predict.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "commands/loaded_model.h"
#include "commands/prediction_job.h"
#include "data/readers/class_names.h"
#include "data/tables/fitted_table.h"
#include "io/hdf5/hdf5_writer.h"
#include "io/replaced_file.h"
#include "recipe/catalog.h"
#include "tensors/memory/torch_error.h"
#include "training/evaluation/catalog.h"
#include "training/evaluation/evaluation.h"

namespace tutti {
namespace {

// By dotted path; "" if the output is a single tensor.
using Parts = std::map<std::string, std::vector<at::Tensor>>;

const Evaluator& evaluator_of(const Job& job, const std::string& label) {
  std::vector<std::string> labels;
  for (const auto& evaluator : job.evaluators) {
    if (evaluator.label == label) return evaluator;
    labels.push_back(evaluator.label);
  }
  Setting(label, "--evaluator", {"command line"})
      .fail(labels.empty() ? "the recipe has no [data.eval]" : "there are " + joined(labels));
}

Parts predictions(State& state, Engine& engine, const Evaluator& evaluator) {
  Parts parts;
  predict(state, engine, evaluator, [&parts](const Outputs& outputs) {
    for (const auto& [name, tensor] : outputs.leaves()) {
      if (tensor.dim() == 0) continue;  // a loss of the program's own
      const bool narrow = tensor.is_floating_point() && tensor.element_size() < 4;
      parts[name].push_back(tensor.to(narrow ? at::kFloat : tensor.scalar_type()).contiguous().cpu());
    }
  });
  return parts;
}

std::vector<std::string> names_of_classes(const Setting& recipe, const Job& job,
                                          const PredictOptions& options) {
  if (!job.fitted.empty()) return FittedTable::from_json(job.fitted).classes;
  const auto is_named = [&](const Setting& section) {
    return EvaluatorKeys::kind().read(section).label == options.evaluator;
  };
  const Setting& data = recipe.at("data");
  auto names = class_names(data.at("train"));
  if (names.empty() && data.has("eval") && is_named(data.at("eval"))) names = class_names(data.at("eval"));
  for (const Setting& section : recipe.at("evaluators").array())
    if (names.empty() && is_named(section)) names = class_names(section);
  return names;
}

// Outputs with a score for each class get the names, a line each.
void name_classes(std::vector<Hdf5Array>& arrays, const std::vector<std::string>& names) {
  std::string lines;
  for (const std::string& name : names) lines += (lines.empty() ? "" : "\n") + name;
  for (Hdf5Array& array : arrays) {
    const bool has_scores = array.shape.size() > 1 && array.shape[1] == std::ssize(names);
    if (has_scores && !names.empty()) array.attributes["class_names"] = lines;
  }
}

std::vector<Hdf5Array> arrays_of(const Parts& parts) {
  std::vector<Hdf5Array> arrays;
  for (const auto& [name, tensors] : parts) {
    std::string path = "output" + (name.empty() ? "" : "/" + name);
    std::replace(path.begin(), path.end(), '.', '/');
    arrays.push_back(hdf5_array(path, at::cat(tensors)));
  }
  return arrays;
}

void write(const PredictOptions& options, const std::vector<Hdf5Array>& arrays) try {
  PosixDisk disk;
  FreshFile fresh(disk, options.out);
  write_hdf5(disk, fresh.name(), arrays);
  fresh.commit();
} catch (const OperatingError& error) {
  Setting(options.out, "--out", {"command line"}).fail(error);
}

// Else the data that were read would be lost.
void require_other_file(const Setting& recipe, const PredictOptions& options) {
  const Setting& data = recipe.at("data");
  std::vector<const Setting*> sections{&data.at("train")};
  if (data.has("eval")) sections.push_back(&data.at("eval"));
  for (const Setting& section : recipe.at("evaluators").array()) sections.push_back(&section);
  for (const Setting* section : sections) {
    std::error_code missing;
    if (section->has("path") && section->at("path").is_text() &&
        std::filesystem::equivalent(section->at("path").text(), options.out, missing))
      Setting(options.out, "--out", {"command line"}).fail("it is the file of " + section->at("path").path);
  }
}

std::string predicted(const Job& job, const PredictOptions& options,
                      const std::vector<std::string>& classes) {
  const Evaluator& evaluator = evaluator_of(job, options.evaluator);
  LoadedModel model(job, options.checkpoint);
  const std::string weights = model.load();
  auto arrays = arrays_of(predictions(model.state, model.engine, evaluator));
  name_classes(arrays, classes);
  write(options, arrays);
  std::ostringstream out;
  out << weights << '\n';
  for (const auto& array : arrays)
    out << array.path << ' ' << shape_text(array.shape)
        << (array.attributes.empty() ? "" : ", with the names of the classes") << '\n';
  out << "written to " << options.out << '\n';
  return out.str();
}

}  // namespace

std::string predict_text(const Setting& recipe, const PredictOptions& options) {
  return blame_recipe(recipe, [&] {
    require_other_file(recipe, options);
    const Job job = prediction_job(recipe, options.checkpoint, options.evaluator);
    return predicted(job, options, names_of_classes(recipe, job, options));
  });
}

}  // namespace tutti
