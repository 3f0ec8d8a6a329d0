#include <algorithm>
#include <cmath>

#include "actors/compute/compute.h"
#include "job/resume.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr Nanoseconds kLongWait = std::chrono::seconds(1);

}  // namespace

// In good time, so that a checkpoint needs no memory that a step has found to be free.
void Compute::reserve_copies(Context& context) {
  const auto reserved = context.ask<CopiesReserved>(cast_.checkpointer, ReserveCopies{saved_pieces()});
  train_step_->count_copies(reserved.bytes);
}

void Compute::snapshot(Context& context, bool last, bool for_good) {
  wait_for_copy(context);
  digest_weights();
  saved_at_ = state_.timestamp.batch;
  Snapshot snapshot;
  RunState saved = run_state();
  snapshot.name = options_.names.at(saved);
  ++snapshots_;
  snapshot.pieces = saved_pieces();
  options_.save.leave_out(saved);
  if (saves()) snapshot.state = saved.to_json();
  snapshot.last = last;
  snapshot.for_good = for_good;
  copying_ = context.request<SnapshotCopied>(cast_.checkpointer, std::move(snapshot));
}

RunState Compute::run_state() const {
  RunState state;
  state.run_name = options_.recipe.at("run_name").text();
  state.seed = options_.seed;
  state.world = options_.world;
  put_time(state_, state);
  state.rest = rest_;
  state.tasks = tasks_;
  if (const std::string now = state_.max_duration.text(); now != begun_duration_) state.max_duration = now;
  state.global_batch = options_.global_batch;
  state.data_digest = options_.data_digest;
  state.accumulation = train_step_->accumulation().state();
  state.grad_scaler = train_step_->grad_scaler();
  for (const auto& [name, listener] : engine_->stateful())
    if (std::string text = listener->state(); !text.empty()) state.listeners[name] = std::move(text);
  for (const auto& [name, value] : state_.metric_values)
    if (std::isfinite(value)) state.metrics[name] = value;
  state.plateau = rate_.state();
  state.lagging_rate = rate_.lagging();
  state.recipe = options_.recipe_text;
  return state;
}

bool Compute::saves() const {
  return !savers_ || std::ranges::find(*savers_, options_.rank) != savers_->end();
}

// This rank's rows; where not all ranks save, those that do share them.
std::vector<CheckpointPiece> Compute::own_pieces() const {
  if (!savers_) return checkpoint_pieces(state_, options_.world, options_.rank);
  const auto self = std::ranges::find(*savers_, options_.rank);
  if (self == savers_->end()) return {};
  return checkpoint_pieces(state_, static_cast<int>(savers_->size()),
                           static_cast<int>(self - savers_->begin()));
}

std::vector<CheckpointPiece> Compute::saved_pieces() const {
  auto pieces = own_pieces();
  std::erase_if(pieces, [this](const auto& piece) { return !options_.save.hold(piece.name); });
  return pieces;
}

// The Checkpointer copies a snapshot once the one before it is out of the way.
void Compute::wait_for_copy(Context& context) {
  if (!copying_) return;
  const TimePoint from = context.now();
  if (!copying_.ready()) record(context, kWaitsForDisk);
  copying_.wait();
  copying_ = {};
  if (context.now() - from < kLongWait || told_of_disk_) return;
  told_of_disk_ = true;
  log_.warning("training waits for the disk: a checkpoint is due before the last one is written");
}

// Together the ranks look at everything.
void Compute::digest_weights() {
  if (!recorder_.digests() || !saves()) return;
  TensorsDigest::Named own;
  for (auto& piece : own_pieces()) own.emplace_back(std::move(piece.name), std::move(piece.tensor));
  weights_digest_.take(state_.timestamp.batch, own);
}

// What was trained until then is saved before the run ends.
void Compute::give_up(Context& context, const std::string& why) {
  logger_.void_attempt();
  if (!rest_.at.empty() || over()) send_logged(context);
  queues_.end(context);
  const int64_t steps = state_.timestamp.batch;
  const bool save = steps > 0 && saved_at_ != steps && !(savers_ && savers_->empty());
  if (!save && snapshots_ == 0) throw OperatingError(why);
  done_ = true;
  if (save) snapshot(context, /*last=*/false, /*for_good=*/true);
  wait_for_copy(context);
  record(context, kDone);
  context.send(cast_.supervisor, TrainingDone{.failure = why, .checkpoints = snapshots_});
}

// There is no verdict any more by which the others would know.
bool Compute::give_up_at_the_end(Context& context) {
  const double mine = recorder_.answer("gave up", gave_up_ ? 1.0 : 0.0);
  const std::string who = train_step_->who_gives_up(context, mine > 0);
  if (!who.empty()) give_up(context, who);
  return !who.empty();
}

}  // namespace tutti
