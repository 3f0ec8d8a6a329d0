#include "io/checkpoint/run_state.h"

#include "io/formats/json_text.h"
#include "runtime/error.h"

namespace tutti {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(AccumulationState, count, since, unit, patience, trying)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GradScalerState, scale, growth_tracker, usual_weight)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PlateauState, multiplier, best, has_best, bad, cooldown)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ResumePoint, at, labels)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LastStep, loss, flops, lr, iteration, epoch, sample, token,
                                                seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BestState, measured, value, best)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TasksState, done, after, until)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RequiredAlgorithm, name, settings)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RunState, run_name, seed, world, step, epoch, batch_in_epoch, last_step,
                                   rest, tasks, max_duration, sample, token, sample_in_epoch, token_in_epoch,
                                   iteration, epoch_in_iteration, token_in_iteration, global_batch,
                                   data_digest, seconds, iteration_seconds, epoch_seconds, accumulation,
                                   grad_scaler, plateau, best, lagging_rate, next_lr, listeners, metrics,
                                   required_algorithms, weights_only, saved_without, recipe)

std::string RunState::to_json() const { return nlohmann::json(*this).dump(1); }

RunState RunState::from_json(const std::string& text) {
  try {
    auto state = parse_json(text);
    if (!state.contains("iteration")) {
      state["iteration"] = 0;
      state["epoch_in_iteration"] = state.at("epoch");
      state["token_in_iteration"] = state.at("token");
    }
    if (!state.contains("accumulation")) state["accumulation"] = AccumulationState();  // older checkpoints
    if (!state.contains("grad_scaler")) state["grad_scaler"] = GradScalerState();
    if (!state.contains("rest")) state["rest"] = state.value("evaluation_due", nlohmann::json::object());
    if (!state.contains("last_step")) {
      state["last_step"] = LastStep();
      for (const char* total : {"iteration", "epoch", "sample", "token", "seconds"})
        state["last_step"][total] = state.at(total);
    }
    if (!state.contains("tasks")) state["tasks"] = TasksState();
    if (!state.contains("epoch_seconds")) state["iteration_seconds"] = state["epoch_seconds"] = 0.0;
    if (!state.contains("max_duration")) state["max_duration"] = "";
    if (!state.contains("listeners")) state["listeners"] = RunState().listeners;
    if (!state.contains("metrics")) state["metrics"] = RunState().metrics;
    if (!state.contains("lagging_rate")) state["lagging_rate"] = 1.0;
    if (!state.contains("next_lr")) state["next_lr"] = RunState().next_lr;
    if (!state.contains("saved_without")) state["saved_without"] = RunState().saved_without;
    if (!state.contains("required_algorithms")) state["required_algorithms"] = nlohmann::json::array();
    if (!state.contains("weights_only")) state["weights_only"] = false;
    if (!state.contains("best")) state["best"] = BestState();
    if (!state.contains("plateau")) state["plateau"] = PlateauState();
    return state.get<RunState>();
  } catch (const nlohmann::json::exception& error) {
    throw OperatingError("the checkpoint's state cannot be read: " + json_problem(error));
  }
}

}  // namespace tutti
