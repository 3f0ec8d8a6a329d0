#include "job/token_times.h"

#include <ATen/ops/zeros.h>

#include "recipe/key_check.h"
#include "recipe/time/time.h"

namespace tutti {
namespace {

const Setting* first_in_tokens(const Setting& setting) {
  if (setting.is_text())
    return time_unit(setting.text()) == "tok" && Time::parse(setting).value() > 0 ? &setting : nullptr;
  if (setting.is_array()) {
    for (const auto& item : setting.array())
      if (const Setting* setting = first_in_tokens(item)) return setting;
  } else if (setting.is_table()) {
    for (const auto& [name, member] : setting.table())
      if (const Setting* setting = first_in_tokens(member)) return setting;
  }
  return nullptr;
}

}  // namespace

bool counts_tokens(const Model& model, const SampleSpec& samples) {
  TensorTree::Children arrays;
  for (const auto& [name, shape] : samples.shapes) {
    Shape name_shape = shape;
    name_shape.insert(name_shape.begin(), 1);
    const auto dtype = samples.dtypes.find(name);
    arrays.emplace_back(name,
                        at::zeros(name_shape, dtype == samples.dtypes.end() ? at::kFloat : dtype->second));
  }
  return model.tokens(Batch(std::move(arrays))) > 0;
}

void require_tokens(const Setting& recipe, const Model& model, const SampleSpec& samples) {
  for (const char* section :
       {"train", "data", "evaluators", "checkpoint", "scheduler", "callbacks", "loggers"}) {
    const Setting* given = recipe.find(section);
    const Setting* time = given ? first_in_tokens(*given) : nullptr;
    if (time && !counts_tokens(model, samples))
      time->fail("the model " + recipe.at("model").at("kind").text() +
                 " counts no tokens, so this time would never come");
  }
}

void require_names_of_steps(const CheckpointSettings& settings, const Model& model,
                            const SampleSpec& samples) {
  const CheckpointNames& names = settings.set.names;
  if (!settings.best || names.name_each_step(/*counts_tokens=*/false)) return;
  if (names.name_each_step(/*counts_tokens=*/true) && counts_tokens(model, samples)) return;
  settings.save_filename.fail("checkpoint.best (" + settings.best_table.position.text() +
                              ") keeps checkpoints of several steps, and two of them can have the same name; "
                              "add {batch}, apart from other numbers");
}

}  // namespace tutti
