#include "analysis/rank_timeline.h"

#include <algorithm>
#include <utility>

#include "runtime/trace_event.h"

namespace tutti {
namespace {

// Tracks are numbered through all ranks: Perfetto names a thread by its tid alone. It keeps pid 0 for itself.
constexpr int64_t kMaxActors = 1000;
constexpr int64_t kMaxMessages = int64_t{1} << 36;
constexpr const char* kControl = "control";

// Happens in the midst of something, which it does not end.
bool is_aside(std::string_view kind) { return kind == name(TraceKind::kBucketFull); }

}  // namespace

RankTimeline::RankTimeline(TraceFile& trace, ControlArrows& arrows, int rank, TimePoint zero,
                           const std::string& title)
    : trace_(trace), arrows_(arrows), rank_(rank), pid_(rank + 1), zero_(zero) {
  trace_.name_process(pid_, title);
}

void RankTimeline::take(const JournalRecord& record) {
  std::visit([this](const auto& one) { take(one); }, record);
}

// Nobody writes down when a message was sent: its arrow starts when it is taken, in what its sender does
// then.
void RankTimeline::take(const JournalDelivery& delivery) {
  ++messages_;
  const int64_t arrow = pid_ * kMaxMessages + messages_;
  Lane& to = lane(delivery.to);
  Lane* from = delivery.from.empty() ? nullptr : &lane(delivery.from);
  Nanoseconds time = later(to, delivery.time);
  if (from) {
    time = std::max(time, from->sign);
    sign(*from, time);
    trace_.leave(from->track, delivery.message, time, arrow);
  }
  end_slice(to);
  begin(to, delivery.message, time, {{"from", from ? delivery.from : "outside"}});
  if (from) trace_.arrive(to.track, delivery.message, time, arrow);
}

// Nothing arrives before it was sent, whatever two clocks say.
void RankTimeline::take(const JournalEvent& event) {
  Lane& here = lane(event.actor);
  const auto packet = arrows_.next(rank_, event);
  Nanoseconds time = later(here, event.time);
  if (packet && !packet->leaves) time = std::max(time, packet->sent + Nanoseconds(1));
  const TraceFile::Args args{{"step", event.step}, {"detail", event.detail}};
  sign(here, time);
  if (is_aside(event.kind)) {
    trace_.mark(here.track, event.kind, time, args);
    return;
  }
  end_event(here);
  trace_.begin(here.track, event.kind, time, args);
  here.event = true;
  if (packet) draw(*packet, here, time);
}

// The numbers below those of the first rank's messages are free.
void RankTimeline::draw(const ControlArrows::End& end, const Lane& lane, Nanoseconds time) {
  if (end.leaves)
    trace_.leave(lane.track, kControl, time, end.arrow);
  else
    trace_.arrive(lane.track, kControl, time, end.arrow);
}

void RankTimeline::take(const JournalEnd& end) {
  ended_ = true;
  trace_.mark_process({pid_, pid_ * kMaxActors}, "end: " + end.text, last_sign());
}

void RankTimeline::take(const JournalIncomplete& incomplete) {
  ended_ = true;
  trace_.mark_process({pid_, pid_ * kMaxActors}, "not written down from here: " + incomplete.why,
                      last_sign());
}

void RankTimeline::finish() {
  for (auto& [actor, lane] : lanes_) end_slice(lane);
  if (!ended_)
    trace_.mark_process({pid_, pid_ * kMaxActors}, "the journal goes no further: killed, or still running",
                        last_sign());
}

RankTimeline::Lane& RankTimeline::lane(std::string_view actor) {
  const auto found = lanes_.find(actor);
  if (found != lanes_.end()) return found->second;
  Lane& made = lanes_[std::string(actor)];
  made.track = {pid_, pid_ * kMaxActors + static_cast<int64_t>(lanes_.size())};
  trace_.name_thread(made.track, actor);
  return made;
}

// In a journal, the times of two threads may be out of order by what it takes to write one down.
Nanoseconds RankTimeline::later(const Lane& lane, TimePoint time) const {
  return std::max(lane.sign, Nanoseconds(time - zero_));
}

// Of an actor that has had no message yet, its first sign begins a slice.
void RankTimeline::sign(Lane& lane, Nanoseconds time) {
  if (!lane.slice) begin(lane, "starts", time, {});
  lane.sign = time;
}

void RankTimeline::begin(Lane& lane, std::string_view name, Nanoseconds time, const TraceFile::Args& args) {
  trace_.begin(lane.track, name, time, args);
  lane.sign = time;
  lane.slice = true;
}

void RankTimeline::end_event(Lane& lane) {
  if (std::exchange(lane.event, false)) trace_.end(lane.track, lane.sign);
}

void RankTimeline::end_slice(Lane& lane) {
  end_event(lane);
  if (std::exchange(lane.slice, false)) trace_.end(lane.track, lane.sign);
}

Nanoseconds RankTimeline::last_sign() const {
  Nanoseconds last{};
  for (const auto& [actor, lane] : lanes_) last = std::max(last, lane.sign);
  return last;
}

}  // namespace tutti
