#include "analysis/rank_timeline.h"

#include <algorithm>
#include <utility>

#include "runtime/trace_event.h"

namespace tutti {
namespace {

// Thread ids are unique over all ranks, because Perfetto names a thread by the tid alone. Pid 0 is
// Perfetto's own.
constexpr int64_t kMaxActors = 1000;
constexpr int64_t kMaxMessages = int64_t{1} << 36;
constexpr const char* kControl = "control";

// True for an event that does not end the one before.
bool is_instant(std::string_view kind) { return kind == name(TraceKind::kBucketFull); }

}  // namespace

RankTimeline::RankTimeline(TraceFile& trace, ControlArrows& arrows, int rank, TimePoint zero,
                           const std::string& title)
    : trace_(trace), arrows_(arrows), rank_(rank), pid_(rank + 1), zero_(zero) {
  trace_.name_process(pid_, title);
}

void RankTimeline::draw(const JournalRecord& record) {
  std::visit([this](const auto& one) { draw(one); }, record);
}

// The journal has no time of sending: an arrow starts at the delivery, in the sender's slice of that moment.
void RankTimeline::draw(const JournalDelivery& delivery) {
  ++messages_;
  const int64_t arrow = pid_ * kMaxMessages + messages_;
  Track& to = track_of(delivery.to);
  Track* from = delivery.from.empty() ? nullptr : &track_of(delivery.from);
  Nanoseconds time = monotonic(to, delivery.time);
  if (from) {
    time = std::max(time, from->last);
    advance(*from, time);
    trace_.leave(from->id, delivery.message, time, arrow);
  }
  end_slice(to);
  begin(to, delivery.message, time, {{"from", from ? delivery.from : "outside"}});
  if (from) trace_.arrive(to.id, delivery.message, time, arrow);
}

// A packet arrives after the send, even if two clocks disagree.
void RankTimeline::draw(const JournalEvent& event) {
  Track& actor = track_of(event.actor);
  const auto packet = arrows_.next(rank_, event);
  Nanoseconds time = monotonic(actor, event.time);
  if (packet && !packet->leaves) time = std::max(time, packet->sent + Nanoseconds(1));
  const TraceFile::Args args{{"step", event.step}, {"detail", event.detail}};
  advance(actor, time);
  if (is_instant(event.kind)) {
    trace_.mark(actor.id, event.kind, time, args);
    return;
  }
  end_event(actor);
  trace_.begin(actor.id, event.kind, time, args);
  actor.event = true;
  if (packet) draw_arrow(*packet, actor, time);
}

// Numbers below the first message of rank 0 are free.
void RankTimeline::draw_arrow(const ControlArrows::End& end, const Track& track, Nanoseconds time) {
  if (end.leaves)
    trace_.leave(track.id, kControl, time, end.arrow);
  else
    trace_.arrive(track.id, kControl, time, end.arrow);
}

void RankTimeline::draw(const JournalEnd& end) {
  ended_ = true;
  trace_.mark_process({pid_, pid_ * kMaxActors}, "end: " + end.text, last_time());
}

void RankTimeline::draw(const JournalIncomplete& incomplete) {
  ended_ = true;
  trace_.mark_process({pid_, pid_ * kMaxActors}, "not recorded from here: " + incomplete.why, last_time());
}

void RankTimeline::finish() {
  for (auto& [actor, track] : tracks_) end_slice(track);
  if (!ended_)
    trace_.mark_process({pid_, pid_ * kMaxActors}, "end of the journal: killed, or still running",
                        last_time());
}

RankTimeline::Track& RankTimeline::track_of(std::string_view actor) {
  const auto found = tracks_.find(actor);
  if (found != tracks_.end()) return found->second;
  Track& made = tracks_[std::string(actor)];
  made.id = {pid_, pid_ * kMaxActors + static_cast<int64_t>(tracks_.size())};
  trace_.name_thread(made.id, actor);
  return made;
}

// Times of two threads may be out of order in a journal by the time of writing a record.
Nanoseconds RankTimeline::monotonic(const Track& track, TimePoint time) const {
  return std::max(track.last, Nanoseconds(time - zero_));
}

// The first event of an actor without a message opens a slice.
void RankTimeline::advance(Track& track, Nanoseconds time) {
  if (!track.slice) begin(track, "starts", time, {});
  track.last = time;
}

void RankTimeline::begin(Track& track, std::string_view name, Nanoseconds time, const TraceFile::Args& args) {
  trace_.begin(track.id, name, time, args);
  track.last = time;
  track.slice = true;
}

void RankTimeline::end_event(Track& track) {
  if (std::exchange(track.event, false)) trace_.end(track.id, track.last);
}

void RankTimeline::end_slice(Track& track) {
  end_event(track);
  if (std::exchange(track.slice, false)) trace_.end(track.id, track.last);
}

Nanoseconds RankTimeline::last_time() const {
  Nanoseconds last{};
  for (const auto& [actor, track] : tracks_) last = std::max(last, track.last);
  return last;
}

}  // namespace tutti
