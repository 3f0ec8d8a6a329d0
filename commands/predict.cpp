#include "commands/predict.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "commands/loaded_model.h"
#include "commands/prediction_job.h"
#include "commands/predictions/eval_section.h"
#include "commands/predictions/output_table.h"
#include "commands/predictions/prediction_file.h"
#include "commands/predictions/task_columns.h"
#include "data/readers/class_names.h"
#include "data/readers/opened.h"
#include "data/split/open_split.h"
#include "data/tables/fitted_table.h"
#include "io/checkpoint/saved_state.h"
#include "io/hdf5/hdf5_writer.h"
#include "io/image_folders.h"
#include "io/json/json_line.h"
#include "io/replaced_file.h"
#include "job/recipe_catalogs.h"
#include "models/loss.h"
#include "models/model.h"
#include "recipe/catalog.h"
#include "runtime/printable.h"
#include "runtime/text.h"
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

// On the host; 16-bit floats become float32.
at::Tensor on_host(const at::Tensor& output) {
  const bool narrow = output.is_floating_point() && output.element_size() < 4;
  return output.to(narrow ? at::kFloat : output.scalar_type()).cpu();
}

Parts predictions(State& state, Engine& engine, const Evaluator& evaluator) {
  Parts parts;
  predict(state, engine, evaluator, [&parts](const Outputs& outputs) {
    for (const auto& [name, tensor] : outputs.leaves()) {
      if (tensor.dim() == 0) continue;  // a loss of the program's own
      parts[name].push_back(on_host(tensor.contiguous()));
    }
  });
  return parts;
}

std::vector<std::string> names_of_classes(const Setting& recipe, const Job& job,
                                          const PredictOptions& options) {
  const auto is_named = [&](const Setting& section) {
    return EvaluatorKeys::kind().read(section).label == options.evaluator;
  };
  const Setting& data = recipe.at("data");
  auto names = class_names(data.at("train"), job.fitted);
  if (!job.fitted.empty() || !options.data.empty())
    return names;  // which may have folders that are no classes
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

// True if the path names the file, by itself, as a pattern or as a folder above.
bool names_file(const std::string& path, const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code missing;
  const fs::path whole = fs::canonical(file, missing);
  if (missing) return false;
  std::vector<std::string> named = globbed(path);
  named.push_back(path);
  return std::ranges::any_of(named, [&](const std::string& each) {
    if (!fs::is_directory(each, missing)) return fs::equivalent(each, whole, missing);
    const fs::path below = whole.lexically_relative(fs::canonical(each, missing));
    return !below.empty() && *below.begin() != "..";
  });
}

// Else the data that were read would be lost.
void require_other_file(const Setting& recipe, const std::string& out) {
  const Setting& data = recipe.at("data");
  std::vector<const Setting*> sections{&data.at("train")};
  if (data.has("eval")) sections.push_back(&data.at("eval"));
  for (const Setting& section : recipe.at("evaluators").array()) sections.push_back(&section);
  for (const Setting* section : sections)
    for (const char* key : kFileKeys) {
      const Setting* named = section->find(key);
      if (named && named->is_text() && std::string_view(key) != "command" && names_file(named->text(), out))
        Setting(out, "--out", {"command line"}).fail("it is a file of " + named->path);
    }
}

std::string write_arrays(LoadedModel& model, const Evaluator& evaluator, const PredictOptions& options,
                         const std::vector<std::string>& classes) {
  auto arrays = arrays_of(predictions(model.state, model.engine, evaluator));
  name_classes(arrays, classes);
  write(options, arrays);
  std::ostringstream out;
  for (const auto& array : arrays)
    out << array.path << ' ' << shape_text(array.shape)
        << (array.attributes.empty() ? "" : ", with the names of the classes") << '\n';
  return out.str();
}

// The outputs of a model as its loss takes them.
class Meanings {
 public:
  Meanings(const Job& job, const LoadedModel& model)
      : job_(job),
        classifier_(dynamic_cast<const Classifier*>(model.state.model.get())),
        has_several_labels_(has_saved_labels(model.checkpoint) ||
                            (classifier_ && classifier_->has_several_labels())),
        are_tokens_(model.state.model->vocabulary() > 0 || measures_tokens(*model.state.model)) {}

  bool has_several_labels() const { return has_several_labels_; }

  OutputMeaning meaning_of(const std::string& output) const {
    const Setting& model = job_.recipe.at("model");
    if (model.has("losses")) {
      for (const Setting& loss : model.at("losses").array())
        if (output.empty() || !loss.has("output") || loss.at("output").text() == output)
          return loss_meaning(loss);
      return OutputMeaning::kValues;
    }
    const bool has_loss_of_its_own = model.has("loss_output");
    if (has_loss_of_its_own && job_.spec().classes == 0) return OutputMeaning::kValues;
    if (!classifier_) return are_tokens_ ? OutputMeaning::kClasses : OutputMeaning::kValues;
    return meaning(classifier_->chosen_loss().targets(), has_several_labels_);
  }

 private:
  static bool has_saved_labels(const Checkpoint& checkpoint) {
    return !checkpoint.folder.empty() && !checkpoint.manifest.state.empty() &&
           state_of(checkpoint).several_labels;
  }
  static bool measures_tokens(const Model& model) {
    const auto names = model.get_metrics(/*is_train=*/false);
    return std::ranges::any_of(names, [](const std::string& name) { return name.starts_with("Language"); });
  }
  static OutputMeaning meaning(LossTargets targets, bool has_labels) {
    if (targets == LossTargets::kValues) return OutputMeaning::kValues;
    return targets == LossTargets::kLabels && has_labels ? OutputMeaning::kLabels : OutputMeaning::kClasses;
  }
  // Of a table of [[model.losses]].
  OutputMeaning loss_meaning(const Setting& table) const {
    if (!table.has("loss")) return OutputMeaning::kClasses;
    const Setting& loss = table.at("loss");
    if (loss.is_text() && loss.text() == "own") return OutputMeaning::kValues;
    const auto& shapes = job_.spec().shapes;
    const auto target = shapes.find(table.has("target") ? table.at("target").text() : kTargetArray);
    return meaning(make_loss(loss)->targets(), target != shapes.end() && !target->second.empty());
  }

  const Job& job_;
  const Classifier* classifier_;
  bool has_several_labels_, are_tokens_;
};

// Of outputs other than a loss of the program's own.
std::vector<NamedOutput> tensors_of(const Outputs& outputs, const Meanings& meanings) {
  std::vector<NamedOutput> tensors;
  for (const auto& [name, tensor] : outputs.leaves()) {
    if (tensor.dim() == 0) continue;
    tensors.push_back({name, on_host(tensor), meanings.meaning_of(name)});
  }
  if (tensors.size() == 1) tensors[0].name.clear();
  return tensors;
}

WrittenColumn names_of_rows(const PredictionJob& prediction, const std::vector<int64_t>& samples) {
  std::vector<std::string> files;
  std::vector<int64_t> rows;
  for (const int64_t index : samples) {
    if (prediction.file_of)
      files.push_back(prediction.file_of(index));
    else
      rows.push_back(prediction.number_of(index) + 1);
  }
  if (prediction.file_of) return {"file", std::move(files)};
  return {"row", std::move(rows)};
}

// The samples of a batch but for pictures that could not be read.
class ReadableSamples {
 public:
  explicit ReadableSamples(const PredictionJob& prediction) : prediction_(prediction) {}

  std::vector<int64_t> among(int64_t first, int64_t count) {
    std::vector<int64_t> samples;
    for (int64_t index = first; index < first + count; ++index) {
      const std::string why = prediction_.why_replaced ? prediction_.why_replaced(index) : "";
      if (why.empty())
        samples.push_back(index);
      else if (left_out_++ == 0)
        first_ = why;
    }
    return samples;
  }
  void warn() const {
    if (left_out_ > 0)
      print_warning(grouped(left_out_) +
                    (left_out_ == 1 ? " file is left out, which cannot be read: "
                                    : " files are left out, which cannot be read; the first: ") +
                    first_);
  }

 private:
  const PredictionJob& prediction_;
  int64_t left_out_ = 0;
  std::string first_;
};

// Keeps these samples of a batch that begins with sample `first`.
void keep(std::vector<NamedOutput>& outputs, const std::vector<int64_t>& samples, int64_t first) {
  const at::Tensor rows = at::tensor(samples, at::kLong) - first;
  for (NamedOutput& output : outputs)
    if (output.tensor.size(0) != rows.size(0)) output.tensor = output.tensor.index_select(0, rows);
}

OutputNames names_of_outputs(const Job& job, const Meanings& meanings, std::vector<std::string> classes) {
  OutputNames names{.classes = std::move(classes)};
  if (!job.fitted.empty()) {
    FittedTable table = FittedTable::from_json(job.fitted);
    names.values = std::move(table.target);
    names.mean = std::move(table.target_mean);
    names.deviation = std::move(table.target_std);
  }
  if (meanings.has_several_labels() && names.classes.empty()) names.classes = names.values;
  return names;
}

// A name is that of one column.
void require_different(const WrittenRows& rows) {
  std::set<std::string> names;
  for (const WrittenColumn& column : rows)
    if (!names.insert(column.name).second)
      throw UserError("two columns of the table would be named '" + shown(column.name) +
                      "'; --out FILE.h5 has a place for each output");
}

// "row, class, score"; of many columns the first.
std::string columns_text(const WrittenRows& rows) {
  constexpr std::size_t kMostNames = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(rows.size(), kMostNames); ++i)
    text += (i == 0 ? "" : ", ") + on_one_line(rows[i].name);
  return rows.size() > kMostNames ? text + ", ... (" + grouped(std::ssize(rows)) + " columns)" : text;
}

std::string write_rows(LoadedModel& model, const PredictionJob& prediction, const Evaluator& evaluator,
                       const PredictOptions& options, const std::vector<std::string>& classes) {
  const Meanings meanings(prediction.job, model);
  PredictionFile file(options.out);
  const OutputTableOptions table{
      .names = names_of_outputs(prediction.job, meanings, classes),
      .top_k = options.top_k,
      .write_mask = [&file](const at::Tensor& mask, const std::string& output, int64_t row) {
        return file.write_mask(mask, output, row);
      }};
  ReadableSamples readable(prediction);
  int64_t done = 0, written = 0;
  std::string columns;
  predict(model.state, model.engine, evaluator, [&](const Outputs& outputs) {
    WrittenRows rows = task_columns(model.state);
    auto tensors = rows.empty() ? tensors_of(outputs, meanings) : std::vector<NamedOutput>();
    if (rows.empty() && tensors.empty()) throw UserError("the model has no outputs but its loss");
    const int64_t count = rows.empty() ? tensors[0].tensor.size(0) : static_cast<int64_t>(rows[0].rows());
    const std::vector<int64_t> samples = readable.among(done, count);
    keep(tensors, samples, done);
    done += count;
    if (samples.empty()) return;
    if (rows.empty()) rows = output_columns(tensors, table, written);
    rows.insert(rows.begin(), names_of_rows(prediction, samples));
    if (columns.empty()) {
      require_different(rows);
      columns = columns_text(rows);
    }
    file.add(rows);
    written += std::ssize(samples);
  });
  file.finish();
  readable.warn();
  return grouped(written) + " rows: " + columns + '\n';
}

std::string predicted(const PredictionJob& prediction, const PredictOptions& options,
                      const std::vector<std::string>& classes) {
  const Evaluator& evaluator = evaluator_of(prediction.job, options.evaluator);
  std::istringstream advice(options.data.empty() ? "" : evaluator.data->advice());
  for (std::string line; std::getline(advice, line);) print_warning(line);
  LoadedModel model(prediction.job, options.checkpoint);
  std::string text = model.load() + '\n';
  text += prediction_format(options.out) == PredictionFormat::kHdf5
              ? write_arrays(model, evaluator, options, classes)
              : write_rows(model, prediction, evaluator, options, classes);
  const std::string replaced = prediction.why_replaced ? "" : evaluator.data->replaced();
  if (!replaced.empty()) print_warning(replaced);
  if (options.out != "-") return text + "written to " + options.out + '\n';
  std::fputs(printable(text).c_str(), stderr);
  return "";
}

// A file of the texts on standard input, a line each, in the form of JSON lines.
class TextsOfInput {
 public:
  explicit TextsOfInput(const Setting& section) {
    if (section.at("kind").text() != "text_table" || section.has("text_pair"))
      Setting("-", "--data", {"command line"})
          .fail("texts are taken by models of kind = \"text_table\" with one text a sample");
    const int descriptor = mkstemps(path_.data(), 6);
    if (descriptor < 0) throw OperatingError(path_ + ": cannot be created");
    ::close(descriptor);
    std::ofstream file(path_);
    const std::string key = section.at("text").text();
    for (std::string line; std::getline(std::cin, line);) {
      if (line.ends_with('\r')) line.pop_back();
      file << json_line({{key, as_utf8(line)}}) << '\n';
    }
    file.close();
    if (!file) throw OperatingError(path_ + ": cannot be written");
  }
  ~TextsOfInput() { std::remove(path_.c_str()); }
  TextsOfInput(const TextsOfInput&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "tutti-texts-XXXXXX.jsonl").string();
};

Setting* section_of(Setting& recipe, const std::string& label) {
  const auto has_label = [&](const Setting& section) {
    return EvaluatorKeys::kind().read(section).label == label;
  };
  Setting* data = recipe.find("data");
  if (data->has("eval") && has_label(data->at("eval"))) return data->find("eval");
  for (Setting& section : std::get<Setting::Array>(recipe.find("evaluators")->value))
    if (has_label(section)) return &section;
  return nullptr;
}

// Resolved.
Setting with_eval(Setting recipe, Setting section) {
  Setting::Table& data = recipe.find("data")->table();
  std::erase_if(data, [](const auto& member) { return member.first == "eval"; });
  data.emplace_back("eval", std::move(section));
  return resolve_recipe(recipe);
}

// True for a folder, or a picture.
bool is_of_pictures(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) || is_image_name(path);
}

// The recipe with --data as the path of the evaluator's data.
Setting with_data(Setting recipe, const PredictOptions& options, std::optional<TextsOfInput>& texts) {
  const Setting key(options.data, "--data", {"command line"});
  const Setting* own = section_of(recipe, options.evaluator);
  if (own ? is_split(*own) : options.evaluator == PredictOptions().evaluator) {
    const Setting& train = recipe.at("data").at("train");
    EvalSection eval = own ? eval_section_like(train, *own) : eval_section_like(train);
    if (!eval.note.empty())
      print_warning("[data.eval] has no transforms, so data are prepared as for training; " + eval.note);
    recipe = with_eval(std::move(recipe), std::move(eval.section));
  }
  Setting* section = section_of(recipe, options.evaluator);
  if (!section)
    key.fail("the recipe has no evaluator " + options.evaluator +
             ", whose kind, arrays and transforms the data would have; give [data.eval]");
  if (section->at("kind").text() == "image_table" && is_of_pictures(options.data)) {
    *section = picture_section_like(*section);
    section->table().emplace_back("path", Setting(options.data, section->path + ".path", key.position));
    recipe = resolve_recipe(recipe);
    section = section_of(recipe, options.evaluator);
  }
  Setting* path = section->find("path");
  if (!path) key.fail("data of kind = \"" + section->at("kind").text() + "\" have no path");
  if (options.data == "-") texts.emplace(*section);
  const std::string given = texts ? texts->path() : options.data;
  *path = Setting(std::filesystem::absolute(given).lexically_normal().string(), path->path, key.position);
  return recipe;
}

}  // namespace

std::string predict_text(const Setting& written, const PredictOptions& options) {
  prediction_format(options.out);
  return blame_recipe(written, [&] {
    std::optional<TextsOfInput> texts;
    Setting recipe = resolve_recipe(written);
    require_other_file(recipe, options.out);
    if (!options.data.empty()) {
      recipe = with_data(std::move(recipe), options, texts);
      require_other_file(recipe, options.out);
    }
    const PredictionJob prediction =
        prediction_job(recipe, options.checkpoint,
                       {.evaluator = options.evaluator,
                        .has_no_classes = !options.data.empty(),
                        .leaves_out_unreadable = prediction_format(options.out) != PredictionFormat::kHdf5});
    return predicted(prediction, options, names_of_classes(recipe, prediction.job, options));
  });
}

}  // namespace tutti
