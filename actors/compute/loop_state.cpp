#include "actors/compute/loop_state.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "io/checkpoint/saved_state.h"
#include "job/resume.h"
#include "models/model.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "training/saved_tensors.h"

namespace tutti {
namespace {

using enum ResumePoint::Place;

// True if the pending work of the step changes no saved state. Algorithms may change saved state.
bool is_whole(const ResumePoint& resume, const Engine& engine) {
  return !resume.any() || resume.at == kAtFitEnd || engine.algorithms().empty();
}

std::vector<std::string> changes_since(const RunState& saved, const Setting& recipe) {
  if (saved.recipe.empty()) return {};
  return recipe_changes(recipe, parse_recipe(saved.recipe, "recipe"));
}

}  // namespace

LoopState::LoopState(const TrainStep::Parts& with, TrainStep& train_step, Evaluations& evaluations)
    : tasks(with.job, with.state, with.engine, evaluations, with.times, with.recorder),
      with_(with),
      train_step_(train_step) {
  if (const auto& watched = with.job.settings.checkpoint.best) best.emplace(*watched);
}

ResumePoint::Place LoopState::resume_place() {
  if (pending.at == kAtBatchEnd) TUTTI_PROBE("resume: a batch's end is completed");
  if (pending.at == kAtEpochEnd) TUTTI_PROBE("resume: an epoch's end is completed");
  if (pending.at == kAtFitEnd) TUTTI_PROBE("resume: the evaluations at the end are completed");
  if (pending.at == kAtBatchEnd || pending.at == kAtEpochEnd) return pending.at;
  if (!with_.times.over()) pending = {};  // max_duration is longer than it was
  return kAtStep;
}

// All that a checkpoint saves beside tensors and facts of the run, in the order in which it is restored.
// Saving gives `scaler` and `next_lr` their own values back.
template <typename Copy, typename Saved>
void LoopState::copy_parts(const Copy& copy, Saved& saved) {
  State& state = with_.state;
  GradScalerState scaler = train_step_.loss_scale().state();
  double next_lr = state.next_lr.value_or(-1);
  copy_time(copy, saved, state);
  copy(saved.rest, pending);
  copy(saved.tasks, tasks);
  copy(saved.max_duration, changed_duration_);
  copy(saved.accumulation, train_step_.memory().accumulation(), state.timestamp);
  copy(saved.grad_scaler, scaler);
  copy(saved.plateau, with_.times.rate());
  copy(saved.lagging_rate, with_.times.rate().lagging());
  copy(saved.next_lr, next_lr);
  if (best) copy(saved.best, *best);
  copy(saved.listeners, with_.engine);
  copy(saved.metrics, state.metric_values);
  train_step_.loss_scale().restore(scaler);
  if (next_lr >= 0) state.next_lr = next_lr;
}

RunState LoopState::save() {
  const State& state = with_.state;
  RunState saved;
  saved.run_name = state.run_name;
  saved.seed = state.seed;
  saved.world = state.topology.world;
  saved.global_batch = state.global_batch;
  saved.data_digest = with_.job.data_digest;
  saved.fitted = with_.job.fitted;
  const auto* classifier = dynamic_cast<const Classifier*>(state.model.get());
  saved.several_labels = classifier && classifier->has_several_labels();
  saved.required_algorithms = state.required_algorithms;
  saved.recipe = with_.job.recipe_text;
  saved.names_before_surgery = names_before_surgery(state);
  changed_duration_ = state.max_duration.text();
  if (changed_duration_ == begun_duration_) changed_duration_.clear();
  copy_parts(Save(), saved);
  std::erase_if(saved.metrics, [](const auto& one) { return !std::isfinite(one.second); });
  return saved;
}

void LoopState::restore(RunState saved, const std::string& folder) {
  const Timestamp& time = saved.time;
  const int64_t batches = with_.state.dataloader_len;
  if (time.batch_in_epoch > batches)
    throw UserError("the checkpoint was saved after batch " + std::to_string(time.batch_in_epoch) +
                    " of an epoch, which has " + std::to_string(batches) +
                    " of this data; load_ignore_keys = [\"timestamp\"] begins anew");
  const bool own = lies_in(folder, with_.job.checkpoints), follows = saved.tasks.after == tasks.state().after;
  const bool over = !saved.max_duration.empty() && reached(time, Time::parse(saved.max_duration));
  if (!follows || (!own && (saved.tasks.done > 0 || over))) saved.max_duration.clear();
  if (!own) saved.tasks = {};
  if (!own) saved.best = {};
  use_state(folder, [&] { copy_parts(Restore(), std::as_const(saved)); });
  if (time.batch_in_epoch > 0 && time.batch_in_epoch < batches)
    TUTTI_PROBE("resume: in the middle of an epoch");
  if (time.batch_in_epoch == batches) TUTTI_PROBE("resume: after the last batch of an epoch");
  if (time.batch > 0 && time.batch_in_epoch == 0) TUTTI_PROBE("resume: at the beginning of an epoch");
  if (!pending.labels.empty()) TUTTI_PROBE("resume: an evaluation is due");
  if (with_.times.over()) TUTTI_PROBE("resume: nothing is left to train");
  earlier_s = time.total_wct;
  resumed = {folder, own && time.batch > 0, changes_since(saved, with_.job.recipe)};
  if (time.batch > 0 && own && is_whole(pending, with_.engine)) with_.snapshots.mark_saved();
  with_.times.follow_max_duration();
}

}  // namespace tutti
