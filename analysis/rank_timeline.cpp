#include "analysis/rank_timeline.h"

#include <algorithm>
#include <utility>

#include "io/journal/recorded_run.h"

namespace tutti {
namespace {

// Thread ids are unique over all ranks, because Perfetto names a thread by the tid alone. Pid 0 is
// Perfetto's own.
constexpr int64_t kMaxActors = 1000;
constexpr int64_t kMaxMessages = int64_t{1} << 36;
constexpr const char* kControl = "control";

std::string title(const RecordedJob& head) { return "rank " + std::to_string(head.rank) + ", " + head.host; }

}  // namespace

RankTimeline::RankTimeline(TraceFile& trace, ControlArrows& arrows, const RecordedJob& head, TimePoint zero)
    : trace_(trace),
      arrows_(arrows),
      rank_(head.rank),
      pid_(head.rank + 1),
      zero_(zero),
      work_(*this, head.world, zero) {
  trace_.name_process(pid_, title(head));
}

void RankTimeline::draw(const JournalRecord& record) {
  std::visit([this](const auto& one) { draw(one); }, record);
}

// A packet arrives after the send, even if two clocks disagree.
void RankTimeline::draw(const JournalEvent& event) {
  const auto packet = arrows_.next(rank_, event);
  JournalEvent drawn = event;
  if (packet && !packet->leaves) drawn.time = std::max(event.time, zero_ + packet->sent + Nanoseconds(1));
  const RankWork::Place place = work_.read(drawn);
  if (!packet) return;
  if (packet->leaves)
    trace_.leave(track_of(place.track), kControl, place.time, packet->arrow);
  else
    trace_.arrive(track_of(place.track), kControl, place.time, packet->arrow);
}

void RankTimeline::draw_end(const std::string& text) {
  ended_ = true;
  trace_.mark_process(track_of(0), text, work_.last_time());
}

void RankTimeline::finish() {
  work_.finish();
  if (!ended_) draw_end("end of the journal: killed, or still running");
}

void RankTimeline::begin(int track, Activity, std::string_view name, Nanoseconds time, const Args& args) {
  trace_.begin(track_of(track), name, time, args);
}

void RankTimeline::mark(int track, std::string_view name, Nanoseconds time, const Args& args) {
  trace_.mark(track_of(track), name, time, args);
}

void RankTimeline::leave(int track, const JournalDelivery& delivery, Nanoseconds time) {
  trace_.leave(track_of(track), delivery.message, time, message_arrow());
}

void RankTimeline::arrive(int track, const JournalDelivery& delivery, Nanoseconds time) {
  trace_.arrive(track_of(track), delivery.message, time, message_arrow());
}

void RankTimeline::step_done(int64_t step, Nanoseconds time) {
  for (const StepCounter& counter : counters_)
    if (const auto found = counter.values.find(step); found != counter.values.end())
      trace_.count(track_of(RankWork::kSteps), counter.name, time, found->second);
}

TraceFile::Track RankTimeline::track_of(int track) const { return {pid_, pid_ * kMaxActors + track}; }

// Numbers below the first message of rank 0 belong to control packets.
int64_t RankTimeline::message_arrow() const { return pid_ * kMaxMessages + work_.messages(); }

}  // namespace tutti
