#include "io/checkpoint/run_state.h"

#include <algorithm>
#include <utility>

#include "io/checkpoint/timestamp_fields.h"
#include "io/json/json_text.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr std::pair<const char*, double Timestamp::*> kSeconds[] = {
    {"seconds", &Timestamp::total_wct},
    {"iteration_seconds", &Timestamp::iteration_wct},
    {"epoch_seconds", &Timestamp::epoch_wct},
    {"batch_seconds", &Timestamp::batch_wct}};

}  // namespace

// The fields of a time lie beside the other fields of its object.
inline void to_json(nlohmann::json& to, const Timestamp& time) {
  for (const auto& [key, field] : kTimestampCounts) to[key] = time.*field;
  for (const auto& [key, field] : kSeconds) to[key] = time.*field;
}
inline void from_json(const nlohmann::json& from, Timestamp& time) {
  for (const auto& [key, field] : kTimestampCounts) time.*field = from.value(key, time.*field);
  for (const auto& [key, field] : kSeconds) time.*field = from.value(key, time.*field);
}

NLOHMANN_JSON_SERIALIZE_ENUM(ResumePoint::Place, {{ResumePoint::Place::kAtStep, ""},
                                                  {ResumePoint::Place::kAtBatchEnd, "batch_end"},
                                                  {ResumePoint::Place::kAtEpochEnd, "epoch_end"},
                                                  {ResumePoint::Place::kAtFitEnd, "fit_end"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ResumePoint, at, labels)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LastStep, loss, flops, lr, before)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(AccumulationState, count, since, unit, patience, trying)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GradScalerState, scale, growth_tracker, usual_weight)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlateauState, multiplier, best, has_best, bad, cooldown)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BestState, measured, value, best)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TasksState, done, after, until)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RequiredAlgorithm, name, settings)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ImportedState, program, path, weights, groups, step,
                                                left_behind)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RunState, run_name, seed, world, last_step, rest, tasks,
                                                max_duration, global_batch, data_digest, fitted,
                                                several_labels, accumulation, grad_scaler, plateau, best,
                                                lagging_rate, next_lr, listeners, metrics,
                                                required_algorithms, weights_only, saved_without, recipe,
                                                names_before_surgery, imported)

// Adds values that older checkpoints lack, where a default would be wrong.
static void add_missing(nlohmann::json& state) {
  for (const char* key : {"seed", "step", "epoch"}) state.at(key);
  const nlohmann::json last = state.value("last_step", state);
  if (!last.contains("before")) {
    state["last_step"]["before"] = last;
    state["last_step"]["before"]["step"] = std::max<int64_t>(1, state.at("step")) - 1;
  }
  if (state.contains("evaluation_due")) state["rest"] = state["evaluation_due"];
  if (state.contains("iteration")) return;
  state["epoch_in_iteration"] = state.at("epoch");
  state["token_in_iteration"] = state.at("token");
}

std::string RunState::to_json() const {
  nlohmann::json json = *this;
  tutti::to_json(json, time);
  if (names_before_surgery.empty()) json.erase("names_before_surgery");
  if (fitted.empty()) json.erase("fitted");
  if (!several_labels) json.erase("several_labels");
  if (imported.program.empty()) json.erase("imported");
  return json.dump(1);
}

RunState RunState::from_json(const std::string& text) {
  try {
    nlohmann::json json = parse_json(text);
    add_missing(json);
    auto state = json.get<RunState>();
    json.get_to(state.time);
    return state;
  } catch (const nlohmann::json::exception& error) {
    throw OperatingError("the checkpoint's state cannot be read: " + json_problem(error));
  }
}

Setting RequiredAlgorithm::section(const std::string& file) const {
  return parse_recipe(settings, file).at("algorithms").array().at(0);
}

}  // namespace tutti
