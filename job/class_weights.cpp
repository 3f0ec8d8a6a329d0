#include "job/class_weights.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "data/balance/class_counts.h"
#include "data/transforms/transform.h"
#include "job/evaluation_data.h"

namespace tutti {
namespace {

// Calls visit(weight, the table that names the loss's target, or null) for each weight that is "balanced".
template <class Visit>
void for_balanced_weights(Setting& recipe, const Visit& visit) {
  const auto look_at = [&](Setting* loss, const Setting* among) {
    if (!loss || !loss->is_table()) return;
    for (const char* key : {"weight", "pos_weight"})
      if (Setting* weight = loss->find(key); weight && weight->is_text()) visit(*weight, among);
  };
  Setting& model = *recipe.find("model");
  look_at(model.find("loss"), nullptr);
  if (!model.has("losses")) return;
  for (Setting& table : std::get<Setting::Array>(model.find("losses")->value))
    if (table.is_table()) look_at(table.find("loss"), &table);
}

std::vector<double> weights_of_classes(const Job& job, const Setting& weight) {
  const TrainedClasses known =
      trained_classes(*job.train, job.recipe.at("data").at("train"), ignore_index(job.recipe));
  if (known.classes.empty())
    weight.fail("the class of each training sample is not known: " +
                (known.note.empty() ? "the targets are no single classes" : known.note));
  const Setting& model = job.recipe.at("model");
  const int64_t given = model.has("num_classes") ? model.at("num_classes").integer() : 0;
  return balanced_weights(class_counts(known.classes, std::max(given, job.spec().classes)));
}

std::vector<double> weights_of_labels(const Job& job, const Setting& weight) {
  std::vector<double> weights = balanced_pos_weights(*job.train);
  if (weights.empty()) weight.fail("expected targets of 0 and 1, which can be read at the start");
  return weights;
}

}  // namespace

void settle_class_weights(Job& job) {
  for_balanced_weights(job.recipe, [&](Setting& weight, const Setting* among) {
    if (!job.per_rank_train.empty())
      weight.fail("each rank has samples of its own; expected a list of numbers");
    if (among && among->has("target") && among->at("target").text() != kTargetArray)
      weight.fail("is of the array 'target' alone; expected a list of numbers");
    const bool is_of_labels = weight.path.ends_with("pos_weight");
    Setting::Array numbers;
    for (const double number :
         is_of_labels ? weights_of_labels(job, weight) : weights_of_classes(job, weight))
      numbers.emplace_back(number, weight.path, weight.position);
    weight.value = std::move(numbers);
  });
}

void leave_out_balanced_weights(Setting& recipe) {
  for_balanced_weights(recipe, [](Setting& weight, const Setting*) { weight.value = std::monostate(); });
}

}  // namespace tutti
