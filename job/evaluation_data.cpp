#include "job/evaluation_data.h"

#include <algorithm>
#include <exception>

#include "data/readers/class_names.h"
#include "data/readers/opened.h"
#include "data/texts/task_tokens.h"
#include "data/tokenizers/tokenizer.h"
#include "models/layers/attention.h"
#include "models/zoo/catalog.h"
#include "models/zoo/factory.h"
#include "tensors/memory/torch_error.h"
#include "training/evaluation/catalog.h"
#include "training/state.h"

namespace tutti {
namespace {

// The key of a data section that determines the shape of samples.
const Setting& key_of_samples(const Setting& section) {
  for (const char* key : {"transforms", "path", "command", "images", "shape"})
    if (section.has(key)) return section.at(key);
  return section.at("kind");
}

std::string transforms_hint(const Setting& section, const SampleSpec& evaluated, const std::string& array) {
  const auto dtype = evaluated.dtypes.find(array);
  const bool bytes = dtype != evaluated.dtypes.end() && dtype->second == at::kByte;
  return bytes ? "; [[" + section.path +
                     ".transforms]] with to_tensor makes float32 of it, and so do layout, " +
                     "scale, mean and std in [" + section.path + "]"
               : "";
}

// A folder or dataset that lacks a class would number those after it otherwise.
void require_classes_of_training(const Setting& train, const Setting& section) {
  const std::string& kind = section.at("kind").text();
  if (kind != "image_folder" && kind != "webdataset" && kind != "mds") return;
  const bool lists = kind == "mds" || !train.has("path");
  const std::string remedy =
      lists ? "classes, the same list in both sections," : "classes_from = " + train.at("path").toml();
  const std::vector<std::string> trained = class_names(train), evaluated = class_names(section);
  for (std::size_t i = 0; i < std::min(trained.size(), evaluated.size()); ++i)
    if (trained[i] != evaluated[i])
      key_of_data(section).fail("class " + std::to_string(i) + " is '" + evaluated[i] + "' here and '" +
                                trained[i] + "' in training; " + remedy + " numbers them alike");
}

void require_first_class_of_training(const Setting& train, const Setting& section) {
  const auto trained = DataSettings::read(train).first_class,
             evaluated = DataSettings::read(section).first_class;
  if (trained == evaluated) return;
  (evaluated.is_absent() ? section.at("kind") : evaluated.key)
      .fail("expected first_class = " + std::to_string(trained) + ", as [data.train] has it");
}

// Masks of other values, or in another order, would have other classes.
void require_mask_values_of_training(const Setting& train, const Setting& section) {
  const auto are_masks = [](const Setting& data) { return data.has("masks") || data.has("mask"); };
  const auto values = [](const Setting& data) {
    return data.has("mask_values") ? data.at("mask_values").integers() : std::vector<int64_t>();
  };
  if (!are_masks(train) || !are_masks(section) || values(train) == values(section)) return;
  section.at(section.has("mask_values") ? "mask_values" : "kind")
      .fail(
          "expected the classes of [data.train]: " +
          (train.has("mask_values") ? "mask_values = " + train.at("mask_values").toml() : "no mask_values"));
}

// The key to name where the samples are not those of the training.
const Setting& key_of_shape(const Setting& section) {
  return section.has("sequence_length") ? section.at("sequence_length") : key_of_samples(section);
}

std::string unlike_training(const SampleSpec& trained, const SampleSpec& evaluated,
                            const std::string& array) {
  return "expected samples as in [data.train], whose '" + array + "' is " + trained.describe(array) +
         "; here it is " + evaluated.describe(array);
}

bool same_dtype(const SampleSpec& first, const SampleSpec& second, const std::string& array) {
  const auto a = first.dtypes.find(array), b = second.dtypes.find(array);
  return a == first.dtypes.end() ? b == second.dtypes.end()
                                 : b != second.dtypes.end() && a->second == b->second;
}

// The model judges other shapes.
void require_like_training(const Setting& section, const SampleSpec& trained, const SampleSpec& evaluated) {
  const Setting& key = key_of_shape(section);
  for (const auto& [array, shape] : trained.shapes) {
    if (!evaluated.shapes.count(array)) key.fail("there is no '" + array + "' in it, which [data.train] has");
    if (!same_dtype(trained, evaluated, array))
      key.fail(unlike_training(trained, evaluated, array) + transforms_hint(section, evaluated, array));
  }
}

// The tokens of a task are those that the model is trained on. Of files of tokens nobody knows them.
void require_tokenizer_of_training(const Job& job, const Evaluator& evaluator) {
  const auto trained = job.train ? job.train->tokenizer() : nullptr, evaluated = evaluator.data->tokenizer();
  const Setting& section = evaluator.section;
  const Setting& key = section.at(section.has("tokenizer") ? "tokenizer" : "kind");
  if (trained && (!evaluated || evaluated->digest() != trained->digest()))
    key.fail("expected the tokenizer of [data.train], " + trained->path());
  if (trained) return;
  const bool trains_on_bytes = job.recipe.at("data").at("train").at("kind").text() == "bytes";
  if (evaluated && trains_on_bytes) key.fail("the model is trained on bytes; leave the tokenizer out");
}

// With an ignore_index of their own, metrics would look for what the data no longer have.
void require_no_ignore_index(const Job& job, const Evaluator& evaluator) {
  const Setting metrics = EvaluatorKeys::kind().read(evaluator.section).metrics;
  if (ignore_index(job.recipe) == kIgnoredTarget || metrics.is_none()) return;
  for (const Setting& metric : metrics.array())
    if (metric.is_table() && metric.has("ignore_index") &&
        metric.at("ignore_index").integer() != kIgnoredTarget)
      metric.at("ignore_index")
          .fail("model.ignore_index maps all ignored targets to -100; leave this key out");
}

// The model's objection to a sample of the data, or "".
std::string why_rejected(const State& state, const Evaluator& evaluator, const SampleSpec& spec) {
  if (overlong_sequences(*state.model, spec) > 0)
    return "the model takes at most " + std::to_string(longest_sequence(*state.model)) + " tokens";
  try {
    const int64_t first = 0;
    const Batch batch =
        state.device.take(evaluator.data_of(state.topology.rank)->get({&first, 1}, {state.seed}));
    state.loss_of(state.try_forward(batch), batch);
    return "";
  } catch (const std::exception& error) {
    return one_line(error);
  }
}

constexpr int64_t kBytes = 256;

void require_language_model(Model& model, const Evaluator& evaluator, const SampleSpec& spec) {
  const Setting& section = evaluator.section;
  if (model.vocabulary() == 0)
    section.at("kind").fail(std::string("expected a language model, like gpt or llama, and not ") +
                            model.kind());
  if (!evaluator.data->tokenizer() && model.vocabulary() > kBytes)
    section.at("kind").fail("expected a tokenizer: the model has " + std::to_string(model.vocabulary()) +
                            " tokens, which are more than bytes");
  if (overlong_sequences(model, spec) > 0)
    section.at("sequence_length")
        .fail("the model takes at most " + std::to_string(longest_sequence(model)) +
              " tokens; the longest text has " + std::to_string(spec.shapes.at("input")[0]));
}

// Labels may exceed those of the training data only if the recipe sets the model's number of classes.
void require_known_classes(const Job& job, const Evaluator& evaluator, int pieces) {
  const Setting& section = evaluator.section;
  const SampleSpec spec = evaluator.own.spec(evaluator.data);
  const int64_t trained = job.spec().classes, evaluated = spec.classes;
  const Setting& model = job.recipe.at("model");
  const bool given = model.has("num_classes") || model.has("vocab_size");
  if (!given && trained > 0 && evaluated > trained)
    section.at("kind").fail("its labels reach " + std::to_string(evaluated - 1) +
                            ", but [data.train] has only " + std::to_string(trained) + " classes");
  try {
    build_model(model, spec, job.make_model, pieces);
  } catch (const UserError& error) {
    key_of_samples(section).fail("the model cannot take it: " + error.message());
  }
}

// Reads data that ranks share once.
void scan(const DatasetPtr& shared, const PerRankData& own, const Setting& section) try {
  if (own.empty()) shared->scan();
  for (const auto& dataset : own.datasets) dataset->scan();
} catch (const UserError& error) {
  key_of_data(section).fail(error);
}

}  // namespace

int64_t ignore_index(const Setting& recipe) {
  return ModelKeys::kind().read(recipe.at("model")).ignore_index;
}

void require_suits_training(const Job& job, const Evaluator& evaluator, int pieces) {
  require_classes_of_training(job.recipe.at("data").at("train"), evaluator.section);
  require_first_class_of_training(job.recipe.at("data").at("train"), evaluator.section);
  require_mask_values_of_training(job.recipe.at("data").at("train"), evaluator.section);
  if (is_language_task(evaluator.data->spec()))
    require_tokenizer_of_training(job, evaluator);
  else
    require_like_training(evaluator.section, job.spec(), evaluator.data->spec());
  require_known_classes(job, evaluator, pieces);
  require_no_ignore_index(job, evaluator);
}

void require_takes_samples(const State& state, const Job& job, const Evaluator& evaluator) {
  const SampleSpec trained = job.spec(), evaluated = evaluator.data->spec();
  if (is_language_task(evaluated)) return require_language_model(*state.model, evaluator, evaluated);
  const auto other = std::ranges::find_if(
      trained.shapes, [&](const auto& one) { return evaluated.shapes.at(one.first) != one.second; });
  if (other == trained.shapes.end()) return;
  const std::string why = why_rejected(state, evaluator, evaluated);
  if (!why.empty())
    key_of_shape(evaluator.section).fail(unlike_training(trained, evaluated, other->first) + ", and " + why);
}

void Job::scan_data() const {
  scan(train, per_rank_train, recipe.at("data").at("train"));
  for (const auto& evaluator : evaluators) scan(evaluator.data, evaluator.own, evaluator.section);
}

std::vector<std::string> Job::replaced() const {
  std::vector<std::string> lines;
  const auto add = [&](const Setting& section, const DatasetPtr& shared, const PerRankData& own) {
    for (const DatasetPtr& data : own.empty() ? std::vector{shared} : own.datasets)
      if (const std::string text = data ? data->replaced() : ""; !text.empty())
        lines.push_back(section.path + ": " + text);
  };
  add(recipe.at("data").at("train"), train, per_rank_train);
  for (const auto& evaluator : evaluators) add(evaluator.section, evaluator.data, evaluator.own);
  return lines;
}

}  // namespace tutti
