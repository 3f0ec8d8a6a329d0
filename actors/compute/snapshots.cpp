#include "actors/compute/snapshots.h"

#include <utility>

#include "runtime/probe/probe.h"

namespace tutti {
namespace {

constexpr Nanoseconds kWarnAfter = std::chrono::seconds(1);

}  // namespace

Snapshots::Snapshots(const Job& job, const State& state, const RankActors& actors, Log& log,
                     Recorder& recorder)
    : state_(state),
      checkpointer_(actors.checkpointer),
      log_(log),
      recorder_(recorder),
      settings_(job.settings.checkpoint),
      weights_digest_("compute/weights", recorder, TensorsDigest::kWhole) {}

std::vector<CheckpointPiece> Snapshots::pieces() const {
  auto pieces = checkpoint_pieces(state_);
  std::erase_if(pieces, [this](const auto& piece) { return !settings_.save.saves(piece.name); });
  return pieces;
}

int64_t Snapshots::reserve(Context& context) {
  return context.ask<CopiesReserved>(checkpointer_, ReserveCopies{pieces()}).bytes;
}

void Snapshots::take(Context& context, RunState saved, Kind kind) {
  wait_for_copy(context);
  digest_weights();
  mark_saved();
  ++taken_;
  Snapshot snapshot;
  snapshot.name = settings_.set.names.at(saved);
  snapshot.pieces = pieces();
  settings_.save.remove_unsaved(saved);
  snapshot.state = saved.to_json();
  snapshot.last = kind == Kind::kLast;
  snapshot.for_good = kind == Kind::kForGood;
  snapshot.ready = StreamOrder::record(state_.device);
  copying_ = context.request<SnapshotCopied>(checkpointer_, std::move(snapshot));
}

// The Checkpointer copies a snapshot after the checkpoint before is concluded.
void Snapshots::wait_for_copy(Context& context) {
  if (!copying_) return;
  const TimePoint from = context.now();
  if (!copying_.ready()) {
    TUTTI_PROBE("checkpoint: training waits for the copy of the checkpoint before");
    recorder_.record({context.now(), TraceKind::kWaitsForDisk, state_.timestamp.batch});
  }
  copying_.wait().copied.wait();
  copying_ = {};
  if (context.now() - from < kWarnAfter || std::exchange(warned_of_disk_, true)) return;
  log_.warning("training waits for the disk: a checkpoint is due before the last one is written");
}

void Snapshots::digest_weights() {
  if (!recorder_.digests()) return;
  TensorsDigest::Named own;
  for (auto& piece : checkpoint_pieces(state_))
    own.emplace_back(std::move(piece.name), std::move(piece.tensor));
  weights_digest_.record(state_.timestamp.batch, own);
}

}  // namespace tutti
