#include "actors/checkpointer.h"

#include <utility>

#include "runtime/probe/probe.h"
#include "tensors/memory/out_of_memory.h"

namespace tutti {

Checkpointer::Checkpointer(Disk& disk, std::string checkpoints, ActorId supervisor, Recorder& recorder,
                           const Device& device)
    : disk_(disk),
      device_(device),
      checkpoints_(std::move(checkpoints)),
      supervisor_(supervisor),
      recorder_(recorder),
      copies_(device) {}

void Checkpointer::receive(Context& context, Envelope& envelope) {
  device_.use();
  if (envelope.message.get_if<Snapshot>()) {
    if (!in_flight_) return guard_memory("a checkpoint", [&] { save(context, envelope); });
    TUTTI_PROBE("checkpoint: a snapshot waits until the checkpoint before is concluded");
    next_ = std::move(envelope);
  } else if (envelope.message.get_if<Concluded>()) {
    in_flight_ = false;
    if (auto next = std::exchange(next_, std::nullopt))
      guard_memory("a checkpoint", [&] { save(context, *next); });
  } else if (auto* reservation = envelope.message.get_if<ReserveCopies>()) {
    CopiesReserved reserved;
    guard_memory("the copies for checkpoints",
                 [&] { reserved.bytes = copies_.reserve(reservation->pieces); });
    context.reply(envelope, reserved);
    copies_.touch();
  } else if (auto* join = envelope.message.get_if<Join>()) {
    rank_ = join->topology.rank;
  } else if (auto* start = envelope.message.get_if<Start>()) {
    nonce_ = start->nonce;
  } else if (envelope.message.get_if<Stop>()) {
    context.stop();
  } else {
    TUTTI_ASSERT(false, envelope.message.name());
  }
}

void Checkpointer::save(Context& context, Envelope& envelope) {
  auto& snapshot = *envelope.message.get_if<Snapshot>();
  snapshot.ready.wait();
  StreamOrder copied;
  if (!snapshot.for_good) {
    copied = copies_.copy(snapshot.pieces);
  } else {  // without a copy, for which there may be no memory
    TUTTI_PROBE("checkpoint: written without a copy, since memory ran out");
    for (auto& piece : snapshot.pieces) piece.tensor = piece.tensor.contiguous().cpu();
  }
  context.reply(envelope, SnapshotCopied{copied});
  copies_.finish();
  in_flight_ = rank_ == 0;
  context.send(supervisor_, write(snapshot));
  recorder_.record({context.now(), TraceKind::kDurable});
}

Durable Checkpointer::write(Snapshot& snapshot) {
  Durable durable{snapshot.name, "", {}, std::move(snapshot.state), snapshot.last};
  try {
    // Made at the start: a folder that was moved or removed since is not made again.
    if (!disk_.exists(checkpoints_)) throw OperatingError({checkpoints_}, "was moved or removed under way");
    durable.file = write_rank_file(disk_, unfinished_folder(checkpoints_, snapshot.name, nonce_), rank_,
                                   snapshot.pieces, &layout_);
  } catch (const OperatingError& error) {
    durable.error = error.what();
  }
  durable.error = recorder_.input(RecordedInput::kRankFileError, std::move(durable.error));
  return durable;
}

}  // namespace tutti
