#include "job/named_targets.h"

#include <algorithm>
#include <utility>

#include "data/readers/class_names.h"
#include "data/tables/fitted_table.h"
#include "models/loss.h"
#include "models/zoo/catalog.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

// Of the targets of a data section, if they are classes with names.
std::vector<std::string> names_of_targets(const Setting& section) {
  if (!section.has("sources")) return class_names(section);
  for (const Setting& source : section.at("sources").array())
    if (auto names = class_names(source); !names.empty()) return names;
  return {};
}

std::vector<std::string> names_of_targets(const Job& job) {
  if (job.fitted.empty()) return names_of_targets(job.recipe.at("data").at("train"));
  const FittedTable table = FittedTable::from_json(job.fitted);
  return table.target_is == FittedTable::Target::kName ? table.classes : std::vector<std::string>();
}

bool is_of_values(const Setting& loss) {
  const bool is_own = loss.is_text() && loss.text() == "own";
  return !is_own && make_loss(loss)->targets() == LossTargets::kValues;
}

// The keys of losses of the data's "target" that take values.
std::vector<Setting> losses_of_values(const Setting& model) {
  std::vector<Setting> losses;
  const Setting loss = ModelKeys::kind().read(model).loss;
  if (!loss.is_none() && is_of_values(loss)) losses.push_back(loss);
  if (!model.has("losses")) return losses;
  for (const Setting& table : model.at("losses").array()) {
    const bool is_of_target = !table.has("target") || table.at("target").text() == kTargetArray;
    if (is_of_target && table.has("loss") && is_of_values(table.at("loss")))
      losses.push_back(table.at("loss"));
  }
  return losses;
}

}  // namespace

void keep_class_names(Setting& recipe) {
  constexpr std::size_t kMostNames = 1 << 14;  // each checkpoint has the recipe
  Setting& data = *recipe.find("data")->find("train");
  if (data.at("kind").text() != "image_folder" || data.has("classes_from")) return;
  Setting& classes = *data.find("classes");
  const std::vector<std::string> names = class_names(data);
  const bool can_be_written = std::ranges::all_of(names, is_utf8);
  const bool are_given = !classes.is_none() && !classes.array().empty();
  if (are_given || names.empty() || names.size() > kMostNames || !can_be_written) return;
  Setting::Array texts;
  for (const std::string& name : names) texts.emplace_back(name, classes.path, classes.position);
  classes.value = std::move(texts);
}

bool has_loss_of_values(const Job& job) { return !losses_of_values(job.recipe.at("model")).empty(); }

std::vector<std::string> label_advice(const Job& job) {
  const LabelRange labels = job.train->labels();
  if (labels.largest < 0 || has_loss_of_values(job)) return {};
  const Setting& data = job.recipe.at("data").at("train");
  std::vector<std::string> advice;
  const auto& first_class = job.settings.train_data.first_class;
  if (labels.smallest > 0 && first_class.is_absent())
    advice.push_back("its smallest label is " + std::to_string(labels.smallest) +
                     ", so class 0 has no samples; first_class = " + std::to_string(labels.smallest) +
                     ", here and in evaluations, numbers classes from 0");
  const Setting& model = job.recipe.at("model");
  const bool are_counted = model.has("num_classes") || model.has("classes") ||
                           (data.has("num_classes") && data.at("num_classes").integer() > 0);
  const int64_t classes = labels.largest + 1 - first_class, empty = classes - labels.present;
  if (!are_counted && empty > labels.present && labels.present > 0)
    advice.push_back("its largest label is " + std::to_string(labels.largest) + ", of sample " +
                     std::to_string(labels.sample) + ", so " + grouped(empty) + " of " + grouped(classes) +
                     " classes have no samples; num_classes, here or in [model], makes an error of labels "
                     "beyond it");
  return advice;
}

void require_no_names_as_values(const Job& job) {
  for (const Setting& loss : losses_of_values(job.recipe.at("model")))
    if (const auto names = names_of_targets(job); !names.empty())
      loss.fail("takes numbers, and the targets of data.train are classes with names, such as '" +
                shown(names.back()) + "', of which it would see the place, " +
                std::to_string(names.size() - 1) +
                ": numbers to predict are read from arrays, MDS and tables, of pictures by image_table "
                "(docs/data.md)");
}

}  // namespace tutti
