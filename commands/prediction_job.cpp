#include "commands/prediction_job.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "commands/loaded_model.h"
#include "data/readers/image_files.h"
#include "data/readers/image_folder.h"
#include "data/readers/opened.h"
#include "data/readers/options.h"
#include "data/readers/recipe_transforms.h"
#include "data/readers/table_files.h"
#include "data/readers/transformed_dataset.h"
#include "data/split/held_out.h"
#include "data/split/open_split.h"
#include "data/split/sample_part.h"
#include "data/split/split_groups.h"
#include "data/tables/fitted_table.h"
#include "data/tables/table_dataset.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/checkpoint/run_state.h"
#include "io/image_folders.h"
#include "job/class_weights.h"
#include "job/evaluation_data.h"
#include "job/make_job.h"
#include "job/plugin_library.h"
#include "job/recipe_catalogs.h"
#include "recipe/catalog.h"
#include "runtime/printable.h"
#include "training/evaluation/catalog.h"
#include "training/trainee.h"

namespace tutti {
namespace {

constexpr const char* kTarget = "target";
constexpr int64_t kSomeClasses = 2;

bool shares_samples(const Setting& section) {
  return DataSettings::read(section).sampling == DataSettings::Sampling::kGlobal;
}

// Data in files that all ranks share, as a section's `kind` says; other data are made, or a program's.
bool is_in_files(const Setting& section) {
  const std::string& kind = section.at("kind").text();
  const auto entries = DataKinds::entries();
  const bool is_reader = std::ranges::any_of(entries, [&](const Entry& one) { return one.name == kind; });
  return is_reader && kind != "synthetic" && shares_samples(section);
}

bool names_target(const Setting& section) {
  if (section.at("kind").text() != "hdf5" || !section.has("arrays")) return false;
  const Setting& arrays = section.at("arrays");
  if (arrays.is_table()) return arrays.has(kTarget);
  const auto names = arrays.texts();
  return std::ranges::find(names, kTarget) != names.end();
}

Setting without_target(Setting section) {
  Setting& arrays = *section.find("arrays");
  if (arrays.is_table())
    std::erase_if(arrays.table(), [](const auto& one) { return one.first == kTarget; });
  else
    std::erase_if(std::get<Setting::Array>(arrays.value),
                  [](const Setting& one) { return one.text() == kTarget; });
  return section;
}

// The data of a section, of tables without targets, of others without "target" if that is missing.
DatasetPtr open_without_labels(const Setting& section, int64_t ignore_index, const std::string& fitted) try {
  if (is_table(section) && !fitted.empty()) {
    auto table = FittedTable::from_json(fitted);
    table.skips_targets = true;
    return make_dataset(section, 0, "", ignore_index, table.to_json());
  }
  return make_dataset(section, 0, "", ignore_index, fitted);
} catch (const UserError&) {
  if (!names_target(section)) throw;
  return make_dataset(without_target(section), 0, "", ignore_index, fitted);
}

struct OpenedPictures {
  DatasetPtr data;  // null: the section is no image folder
  bool has_no_classes = false;
};

// True for a folder of pictures alone.
bool has_pictures_alone(const ImageFolderOptions& options) {
  std::error_code error;
  if (!options.list.empty() || !std::filesystem::is_directory(options.path, error)) return false;
  const FolderEntries entries = entries_of_folder(options.path);
  return entries.folders.empty() && !entries.images.empty();
}

OpenedPictures open_image_section(const Setting& section, bool has_no_classes, int64_t ignore_index) {
  if (section.at("kind").text() != "image_folder") return {};
  const auto options = ImageFolderOptions::kind().read(section);
  OpenedPictures pictures;
  const DatasetPtr files = opened(section, [&] {
    pictures.has_no_classes = has_no_classes || !options.masks.empty() || has_pictures_alone(options);
    return std::make_shared<const ImageFiles>(
        pictures.has_no_classes ? open_pictures(options) : open_image_folder(options), options);
  });
  pictures.data = with_recipe_transforms(section, files, "", ignore_index);
  return pictures;
}

// Samples that are said to be those of the training.
class LikeTraining final : public Dataset {
 public:
  LikeTraining(DatasetPtr data, SampleSpec spec) : data_(std::move(data)), spec_(std::move(spec)) {}

  int64_t size() const override { return data_->size(); }
  SampleSpec spec() const override { return spec_; }
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override {
    return data_->get(indices, epoch);
  }
  uint64_t digest() const override { return data_->digest(); }
  int64_t memory_bytes() const override { return data_->memory_bytes(); }
  std::string advice() const override { return data_->advice(); }
  std::string replaced() const override { return data_->replaced(); }

  const DatasetPtr& data() const { return data_; }

 private:
  DatasetPtr data_;
  SampleSpec spec_;
};

// What `use` returns for the picture that a sample was; "" of other samples.
template <class Use>
std::string picture_text(const Dataset& data, int64_t index, const Use& use) {
  if (const auto* images = dynamic_cast<const ImageFiles*>(&data)) return use(*images, index);
  if (const auto* transformed = dynamic_cast<const TransformedDataset*>(&data))
    return picture_text(*transformed->below(), index, use);
  if (const auto* like_training = dynamic_cast<const LikeTraining*>(&data))
    return picture_text(*like_training->data(), index, use);
  const auto* part = dynamic_cast<const SamplePart*>(&data);
  return part ? picture_text(*part->whole(), part->samples()[static_cast<std::size_t>(index)], use) : "";
}

// TableDataset::target_rows of the table that the samples are from.
std::vector<int64_t> target_rows_of(const Dataset& data) {
  if (const auto* table = dynamic_cast<const TableDataset*>(&data)) return table->target_rows();
  if (const auto* transformed = dynamic_cast<const TransformedDataset*>(&data))
    return target_rows_of(*transformed->below());
  const auto* like_training = dynamic_cast<const LikeTraining*>(&data);
  return like_training ? target_rows_of(*like_training->data()) : std::vector<int64_t>();
}

bool has_pictures_in_files(const Setting& section) {
  const std::string& kind = section.at("kind").text();
  return kind == "image_folder" || kind == "image_table";
}

using Shapes = std::map<std::string, Shape>;

// Of the model for such samples; nullopt if it does not take them.
std::optional<Shapes> shapes_for(const Setting& model, const SampleSpec& samples) try {
  const auto built = build_model(model, samples, make_model);
  Shapes shapes;
  for (const auto& named : parameters(*built)) shapes[named.name] = named.parameter->tensor.sizes().vec();
  return shapes;
} catch (const UserError&) {
  return std::nullopt;
}

// The classes for which the model has a saved shape: shapes grow with the classes, by as much for each.
std::optional<int64_t> classes_that_fit(const Shapes& few, const Shapes& more, int64_t classes,
                                        const TensorSource& weights) {
  for (const auto& [name, shape] : few) {
    if (!weights.contains(name)) continue;
    const Shape& saved = weights.at(name).shape;
    const Shape& other = more.at(name);
    for (std::size_t d = 0; d < shape.size() && saved.size() == shape.size(); ++d)
      if (const int64_t slope = other[d] - shape[d]; slope > 0)
        return classes + (saved[d] - shape[d]) / slope;
  }
  return std::nullopt;
}

// Kinds of targets that models take: a class, numbers, or a class for each token.
class TargetGuess {
 public:
  TargetGuess(const Setting& model, SampleSpec samples, const TensorSource& weights)
      : model_(model), samples_(std::move(samples)), weights_(weights) {}

  std::optional<SampleSpec> spec() const {
    if (model_.has("losses")) return samples_;  // of a program, whose outputs are what they are
    if (samples_.shapes.contains(kTarget)) return fitting([this](int64_t n) { return with_classes(n); });
    const auto with_class = [this](int64_t n) { return with(with_classes(n), {}, at::kLong); };
    const auto with_numbers = [this](int64_t n) { return with(samples_, {n}, at::kFloat); };
    const auto with_tokens = [this](int64_t n) {
      return with(with_classes(n), samples_.shapes.at("input"), at::kLong);
    };
    if (auto data = fitting(with_class)) return data;
    if (auto data = fitting(with_numbers)) return data;
    const auto input = samples_.shapes.find("input");
    if (input == samples_.shapes.end()) return std::nullopt;
    const auto with_pixels = [&](int64_t n) {
      return with(with_classes(n), {input->second.end() - 2, input->second.end()}, at::kLong);
    };
    if (auto data = fitting(with_tokens)) return data;
    return input->second.size() == 3 ? fitting(with_pixels) : std::nullopt;
  }

 private:
  SampleSpec with_classes(int64_t classes) const {
    SampleSpec spec = samples_;
    spec.classes = std::max(spec.classes, classes);
    return spec;
  }

  static SampleSpec with(SampleSpec spec, Shape shape, at::ScalarType dtype) {
    spec.shapes[kTarget] = std::move(shape);
    spec.dtypes[kTarget] = dtype;
    return spec;
  }

  // True if the weights have no other shape of a name.
  bool fit(const Shapes& shapes) const {
    return std::ranges::all_of(shapes, [this](const auto& shape) {
      return !weights_.contains(shape.first) || weights_.at(shape.first).shape == shape.second;
    });
  }

  template <class Make>
  std::optional<SampleSpec> fitting(const Make& make) const {
    const int64_t some = model_.has("num_classes") ? model_.at("num_classes").integer()
                                                   : std::max(kSomeClasses, samples_.classes);
    const auto few = shapes_for(model_, make(some)), more = shapes_for(model_, make(some + 1));
    if (!few) return std::nullopt;
    const auto spec = make(more ? classes_that_fit(*few, *more, some, weights_).value_or(some) : some);
    const auto shapes = shapes_for(model_, spec);
    return shapes && fit(*shapes) ? std::optional(spec) : std::nullopt;
  }

  const Setting& model_;
  const SampleSpec samples_;
  const TensorSource& weights_;
};

std::string checkpoints_folder(const RunSettings& settings) {
  return settings.checkpoint.save_folder->value_or("runs/" + settings.run_name + "/checkpoints");
}

// Without a folder if there is none that can be read.
Checkpoint checkpoint_of(const Setting& recipe, const std::string& path) try {
  const PosixDisk disk;
  const RunSettings settings = RunSettings::read(recipe);
  if (!path.empty() && path != "auto") return find_checkpoint(disk, path, {warn_ignored});
  return newest_good_checkpoint(disk, checkpoints_folder(settings), {warn_ignored}, settings.checkpoint.set);
} catch (const OperatingError&) {
  return {};
}

std::optional<SampleSpec> spec_of_weights(const Setting& recipe, const SampleSpec& samples,
                                          const std::string& path) try {
  const Checkpoint checkpoint = checkpoint_of(recipe, path);
  if (checkpoint.folder.empty()) return std::nullopt;
  const CheckpointTensors weights(PosixDisk(), checkpoint, kModelPrefix);
  return TargetGuess(recipe.at("model"), samples, weights).spec();
} catch (const OperatingError&) {
  return std::nullopt;
}

// A mask of pictures has their size.
Shape missing_shape(const SampleSpec& samples, const SampleSpec& trained, const std::string& array) {
  const Shape& shape = trained.shapes.at(array);
  const auto own = samples.shapes.find("input"), input = trained.shapes.find("input");
  if (array != kTarget || shape.size() != 2 || own == samples.shapes.end() || input == trained.shapes.end())
    return shape;
  const bool is_mask = input->second.size() == 3 && own->second.size() == 3 &&
                       std::equal(shape.begin(), shape.end(), input->second.end() - 2);
  return is_mask ? Shape(own->second.end() - 2, own->second.end()) : shape;
}

SampleSpec with_missing(SampleSpec samples, const SampleSpec& trained) {
  for (const auto& [array, shape] : trained.shapes) {
    if (samples.shapes.contains(array)) continue;
    samples.shapes[array] = missing_shape(samples, trained, array);
    if (const auto dtype = trained.dtypes.find(array); dtype != trained.dtypes.end())
      samples.dtypes[array] = dtype->second;
    samples.classes = std::max(samples.classes, trained.classes);
  }
  return samples;
}

// The training's samples, as its table determined, or by their data if those are there. Throws their error.
SampleSpec trained_spec(const Setting& recipe, const SampleSpec& samples, const std::string& checkpoint,
                        const std::string& fitted) try {
  const Setting& train = recipe.at("data").at("train");
  if (!fitted.empty()) return with_missing(samples, FittedTable::from_json(fitted).spec());
  return make_dataset(train, 0, "", ignore_index(recipe))->spec();
} catch (const UserError&) {
  if (const auto spec = spec_of_weights(recipe, samples, checkpoint)) return *spec;
  throw;
}

// The data of a section are given, and transformed already.
void give_data(Setting& section, const DatasetPtr& data, UserComponents& components) {
  const auto label = EvaluatorKeys::kind().read(section).label;
  components.data[label.is_absent() ? "train" : label.value] = data;
  section.find("kind")->value = std::string("program");
  section.find("sampling")->value = std::string("global");
  for (const char* key : {"layout", "scale", "mean", "std", "transforms", "sampler"})
    if (Setting* setting = section.find(key)) setting->value = std::monostate();
  section.find("drop_last")->value = false;
  section.find("subset_num_batches")->value = int64_t{-1};
}

std::vector<Setting*> evaluator_sections(Setting& recipe) {
  std::vector<Setting*> sections;
  if (recipe.at("data").has("eval")) sections.push_back(recipe.find("data")->find("eval"));
  for (Setting& section : std::get<Setting::Array>(recipe.find("evaluators")->value))
    sections.push_back(&section);
  return sections;
}

// Gives the job the data to predict in place of all other data in files.
void give_data_to_predict(Setting& recipe, const std::string& checkpoint, const PredictedData& predicted,
                          const std::string& fitted, UserComponents& components) {
  const auto sections = evaluator_sections(recipe);
  const auto named = std::ranges::find_if(sections, [&](const Setting* section) {
    return EvaluatorKeys::kind().read(*section).label == predicted.evaluator;
  });
  if (named == sections.end() || !is_in_files(**named)) return;  // a split needs the training data
  if (Setting* bad = (*named)->find("on_bad_sample"); bad && bad->is_text())
    // Without a reader of the names, another sample's prediction would have this sample's name.
    bad->value =
        std::string(predicted.leaves_out_unreadable && has_pictures_in_files(**named) ? "skip" : "error");
  Setting& train = *recipe.find("data")->find("train");
  const int64_t ignored = ignore_index(recipe);
  const OpenedPictures pictures = open_image_section(**named, predicted.has_no_classes, ignored);
  const DatasetPtr data = pictures.data ? pictures.data : open_without_labels(**named, ignored, fitted);
  SampleSpec samples = data->spec();
  const std::string& kind = train.at("kind").text();
  if (kind == kPluginKind || kind == "program" || !shares_samples(train)) return;
  const SampleSpec trained = trained_spec(recipe, samples, checkpoint, fitted);
  if (pictures.has_no_classes) samples.classes = trained.classes;
  const auto like_training = std::make_shared<LikeTraining>(data, with_missing(samples, trained));
  for (Setting* section : sections)
    if (is_in_files(*section) || is_split(*section)) give_data(*section, like_training, components);
  if (is_in_files(train)) give_data(train, std::make_shared<LikeTraining>(data, trained), components);
}

// True if the evaluator's data are a share of the training data.
bool predicts_share(const Setting& recipe, const std::string& evaluator) {
  const Setting& eval = recipe.at("data").at("eval");
  return is_split(eval) && EvaluatorKeys::kind().read(eval).label == evaluator;
}

// Of the checkpoint; without one, of the training data if they are a table. "": as the job will find.
std::string fitted_to_predict(const Setting& recipe, const std::optional<RunState>& saved,
                              const std::string& evaluator) {
  const Setting& train = recipe.at("data").at("train");
  std::string fitted = saved ? saved->fitted : "";
  if (!fitted.empty() || !is_table(train) || predicts_share(recipe, evaluator)) return fitted;
  return make_dataset(train, 0, "", ignore_index(recipe))->fitted();
}

}  // namespace

std::optional<RunState> saved_state(const Setting& recipe, const std::string& checkpoint) try {
  const Checkpoint named = checkpoint_of(recipe, checkpoint);
  if (named.folder.empty() || named.manifest.state.empty()) return std::nullopt;
  return RunState::from_json(named.manifest.state);
} catch (const OperatingError&) {
  return std::nullopt;  // as the weights will say
}

void warn_of_changed_split(const Job& job, const std::optional<RunState>& saved) {
  if (!saved || saved->data_digest == job.data_digest || !is_split(job.recipe.at("data").at("eval"))) return;
  print_warning(
      "the data, or how they are split or transformed, are not those of the training: samples that are held "
      "out now may have been trained on");
}

namespace {

// Adds the numbers and files of the samples that the split holds out.
void add_share(PredictionJob& prediction, const Setting& train, const Setting& split) {
  const Evaluator& evaluator = prediction.job.evaluators.front();
  if (is_table(train)) {
    prediction.share = samples_marked(held_out_rows(train, split, ignore_index(prediction.job.recipe)), true);
  } else if (const auto* part = dynamic_cast<const SamplePart*>(evaluator.data.get())) {
    prediction.share = part->samples();
  }
}

// True if the evaluator's samples are pictures in files of their own.
bool predicts_pictures(const Setting& recipe, const std::string& evaluator) {
  if (predicts_share(recipe, evaluator)) return has_pictures_in_files(recipe.at("data").at("train"));
  const auto has_label = [&](const Setting& section) {
    return section.is_table() && EvaluatorKeys::kind().read(section).label == evaluator &&
           has_pictures_in_files(section);
  };
  return has_label(recipe.at("data").at("eval")) ||
         std::ranges::any_of(recipe.at("evaluators").array(), has_label);
}

const Evaluator* evaluator_with(const Job& job, const std::string& label) {
  const auto named = std::ranges::find(job.evaluators, label, &Evaluator::label);
  return named == job.evaluators.end() ? nullptr : &*named;
}

}  // namespace

PredictionJob prediction_job(const Setting& written, const std::string& checkpoint,
                             const PredictedData& data) {
  Setting recipe = resolve_recipe(written);
  begin_process(RunSettings::read(recipe));
  leave_out_balanced_weights(recipe);
  load_plugin(recipe);  // for transforms of data that are opened here
  JobOptions job;
  job.makes_folders = false;
  const auto saved = saved_state(recipe, checkpoint);
  job.fitted = fitted_to_predict(recipe, saved, data.evaluator);
  const bool are_pictures = predicts_pictures(recipe, data.evaluator);
  give_data_to_predict(recipe, checkpoint, data, job.fitted, job.components);
  const Setting sections = recipe.at("data");
  const bool is_of_share = predicts_share(recipe, data.evaluator);
  PredictionJob prediction{.job = make_job(std::move(recipe), job)};
  if (is_of_share) {
    warn_of_changed_split(prediction.job, saved);
    add_share(prediction, sections.at("train"), sections.at("eval"));
  }
  const Evaluator* evaluator = evaluator_with(prediction.job, data.evaluator);
  if (evaluator) prediction.target_rows = target_rows_of(*evaluator->data);
  if (are_pictures && evaluator) {
    prediction.file_of = [samples = evaluator->data](int64_t index) {
      return picture_text(*samples, index,
                          [](const ImageFiles& files, int64_t i) { return files.short_name(i); });
    };
    prediction.why_replaced = [samples = evaluator->data](int64_t index) {
      return picture_text(*samples, index,
                          [](const ImageFiles& files, int64_t i) { return files.why_replaced(i); });
    };
  }
  return prediction;
}

Job job_with_data(Setting recipe, const DatasetPtr& data) {
  leave_out_balanced_weights(recipe);
  begin_process(RunSettings::read(recipe));
  JobOptions job;
  job.makes_folders = false;
  give_data(*recipe.find("data")->find("train"), data, job.components);
  for (Setting* section : evaluator_sections(recipe)) give_data(*section, data, job.components);
  return make_job(std::move(recipe), job);
}

}  // namespace tutti
