#include "analysis/timeline.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/control_arrows.h"
#include "analysis/metrics_table.h"
#include "analysis/profiler_traces.h"
#include "analysis/rank_work.h"
#include "io/formats/trace_file.h"
#include "io/journal/journal.h"
#include "io/journal/journal_reader.h"
#include "io/journal/recorded_run.h"
#include "runtime/error.h"

namespace tutti {

namespace {

// Numbers that a trace shows as curves: a value at the end of each step.
struct StepCounter {
  std::string name;                  // "samples/s"
  std::map<int64_t, double> values;  // by step; finite
};

// Draws one rank's journal, record by record: a track for the steps and one for each actor (RankWork says
// what is on them), arrows for messages, and for control packets between the Syncs of two ranks.
class RankTimeline final : private WorkSink {
 public:
  // `zero`: the start of the trace by the rank's clock.
  RankTimeline(TraceFile& trace, ControlArrows& arrows, const RecordedJob& head, TimePoint zero);

  void add(StepCounter counter) { counters_.push_back(std::move(counter)); }
  void draw(const JournalRecord& record);
  void finish();  // call after the last record

  int64_t messages() const { return work_.messages(); }

 private:
  void draw(const JournalDelivery& delivery) { work_.read(delivery); }
  void draw(const JournalEvent& event);
  void draw(const JournalEnd& end) { draw_end("end: " + end.text); }
  void draw(const JournalIncomplete& cut) { draw_end("not recorded from here: " + cut.why); }
  template <class Other>
  void draw(const Other&) {}
  void draw_end(const std::string& text);

  void add_track(int track, std::string_view name) override { trace_.name_thread(track_of(track), name); }
  void begin(int track, Activity work, std::string_view name, Nanoseconds time, const Args& args) override;
  void end(int track, Nanoseconds time) override { trace_.end(track_of(track), time); }
  void mark(int track, std::string_view name, Nanoseconds time, const Args& args) override;
  void leave(int track, const JournalDelivery& delivery, Nanoseconds time) override;
  void arrive(int track, const JournalDelivery& delivery, Nanoseconds time) override;
  void step_done(int64_t step, Nanoseconds time) override;

  TraceFile::Track track_of(int track) const;
  int64_t message_arrow() const;

  TraceFile& trace_;
  ControlArrows& arrows_;
  int rank_;
  int64_t pid_;
  TimePoint zero_;
  RankWork work_;
  std::vector<StepCounter> counters_;
  bool ended_ = false;
};

// Thread ids are unique over all ranks, because Perfetto names a thread by the tid alone. Pid 0 is
// Perfetto's own.
constexpr int64_t kMaxActors = 1000;
constexpr int64_t kMaxMessages = int64_t{1} << 36;
constexpr const char* kControl = "control";

std::string title(const RecordedJob& head) { return "rank " + std::to_string(head.rank) + ", " + head.host; }

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
    if (const auto value = counter.values.find(step); value != counter.values.end())
      trace_.count(track_of(RankWork::kSteps), counter.name, time, value->second);
}

TraceFile::Track RankTimeline::track_of(int track) const { return {pid_, pid_ * kMaxActors + track}; }

// Numbers below the first message of rank 0 belong to control packets.
int64_t RankTimeline::message_arrow() const { return pid_ * kMaxMessages + work_.messages(); }

constexpr std::size_t kMaxMeetings = 10'000;  // of each kind; the first ones suffice

struct Times {
  std::vector<TimePoint> entered, left;
};

// Times in one rank's journal, by the rank's clock.
struct MeetingTimes {
  TimePoint start = kNever;
  Times agreements, steps;
};

void add(std::vector<TimePoint>& times, TimePoint time) {
  if (times.size() < kMaxMeetings) times.push_back(time);
}

void add(MeetingTimes& meetings, const JournalDelivery& delivery) {
  if (delivery.message == kAgreement.entered && delivery.to == name(ActorKind::kSync))
    add(meetings.agreements.entered, delivery.time);
  if (delivery.message == kAgreement.left) add(meetings.agreements.left, delivery.time);
  if (delivery.message == kStepEnd.entered) add(meetings.steps.entered, delivery.time);
}

void add(MeetingTimes& meetings, const JournalEvent& event) {
  if (event.kind == kStepEnd.left) add(meetings.steps.left, event.time);
}

MeetingTimes read_meetings(const std::string& path) {
  JournalCursor cursor(path);
  MeetingTimes meetings;
  while (meetings.steps.left.size() < kMaxMeetings) {
    const auto record = cursor.next();
    if (!record) break;
    if (const auto* delivery = std::get_if<JournalDelivery>(&*record)) {
      meetings.start = std::min(meetings.start, delivery->time);
      add(meetings, *delivery);
    } else if (const auto* event = std::get_if<JournalEvent>(&*record)) {
      add(meetings, *event);
    }
  }
  return meetings;
}

// The shifts that no meeting contradicts.
struct ShiftRange {
  Nanoseconds min = Nanoseconds::min(), max = Nanoseconds::max();

  void narrow(const Times& first, const Times& other) {
    const std::size_t count =
        std::min({first.entered.size(), first.left.size(), other.entered.size(), other.left.size()});
    for (std::size_t i = 0; i < count; ++i) {
      min = std::max(min, first.entered[i] - other.left[i]);
      max = std::min(max, first.left[i] - other.entered[i]);
    }
  }
  bool known() const { return min > Nanoseconds::min(); }
  Nanoseconds best() const {
    if (min <= Nanoseconds(0) && Nanoseconds(0) <= max) return Nanoseconds(0);
    return min + (max - min) / 2;
  }
};

// The shift by the wall clocks at the start of the journals; for ranks that never met.
Nanoseconds wall_clock_shift(const RecordedRun& run, int rank, const MeetingTimes& first,
                             const MeetingTimes& other) {
  if (run.heads[rank].host == run.heads[0].host || first.start == kNever || other.start == kNever)
    return Nanoseconds(0);
  const std::chrono::milliseconds later(run.heads[rank].unix_ms - run.heads[0].unix_ms);
  return later - (other.start - first.start);
}

}  // namespace

std::vector<Nanoseconds> align_clocks(const RecordedRun& run) {
  const MeetingTimes first = read_meetings(run.path(0));
  std::vector<Nanoseconds> shifts{Nanoseconds(0)};
  for (int r = 1; r < run.world(); ++r) {
    const MeetingTimes other = read_meetings(run.path(r));
    ShiftRange range;
    range.narrow(first.agreements, other.agreements);
    range.narrow(first.steps, other.steps);
    shifts.push_back(range.known() ? range.best() : wall_clock_shift(run, r, first, other));
  }
  return shifts;
}

namespace {

TraceFile make_trace(Disk& disk, const std::string& path) try {
  return TraceFile(disk, path);
} catch (const OperatingError& error) {
  throw UserError(error.what());
}

TimePoint time_of(const JournalRecord& record) {
  if (const auto* delivery = std::get_if<JournalDelivery>(&record)) return delivery->time;
  if (const auto* event = std::get_if<JournalEvent>(&record)) return event->time;
  return kNever;
}

TimePoint first_time(const std::string& path) {
  JournalCursor cursor(path);
  while (const auto record = cursor.next())
    if (const TimePoint time = time_of(*record); time != kNever) return time;
  return kNever;
}

// The earliest time in any journal, by rank 0's clock.
TimePoint trace_start(const RecordedRun& run, const std::vector<Nanoseconds>& shifts) {
  TimePoint earliest = kNever;
  for (int r = 0; r < run.world(); ++r) {
    const TimePoint first = first_time(run.path(r));
    if (first != kNever) earliest = std::min(earliest, first + shifts[r]);
  }
  return earliest == kNever ? TimePoint() : earliest;
}

// The start of the trace by each rank's clock.
std::vector<TimePoint> trace_starts(const RecordedRun& run) {
  const auto shifts = align_clocks(run);
  const TimePoint zero = trace_start(run, shifts);
  std::vector<TimePoint> zeros;
  for (const Nanoseconds shift : shifts) zeros.push_back(zero - shift);
  return zeros;
}

// The first step that a later attempt trained again: its line in metrics.jsonl is the later attempt's.
int64_t first_repeated_step(const std::string& run_dir, const RecordedRun& run) {
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const std::string& folder : recorded_starts(run_dir)) {
    if (folder <= run.folder) continue;
    if (const int64_t step = recorded_steps(journal_path(folder, 0)).first; step > 0)
      first = std::min(first, step);
  }
  return first;
}

StepCounter counter(const MetricsTable& metrics, const char* column, const char* name, int64_t end) {
  StepCounter counter{name, {}};
  const MetricsColumn* values = metrics.find(column);
  for (std::size_t i = 0; values && i < values->steps.size(); ++i)
    if (values->steps[i] < end && std::isfinite(values->values[i]))
      counter.values.emplace(values->steps[i], values->values[i]);
  return counter;
}

// Of all ranks together; metrics.jsonl is rank 0's.
void add_counters(const Disk& disk, const std::string& run_dir, const RecordedRun& run,
                  RankTimeline& timeline) {
  const MetricsTable metrics = read_metrics(disk, run_dir);
  if (metrics.columns.empty()) return;
  const int64_t end = first_repeated_step(run_dir, run);
  timeline.add(counter(metrics, "samples_per_s", "samples/s", end));
  timeline.add(counter(metrics, "memory_peak_mb", "memory peak of a rank (MB)", end));
}

// Below those of the actors.
TraceFile::Track track_of_profiler(int rank, int64_t i) {
  const int64_t pid = rank + 1;
  return {pid, (pid + 1) * kMaxActors - 1 - i};
}

}  // namespace

std::string write_timeline(Disk& disk, const std::string& run_dir, const std::string& out, int64_t start) {
  const RecordedRun run = recorded_run(run_dir, start);
  const auto zeros = trace_starts(run);
  TraceFile trace = make_trace(disk, out);
  ControlArrows arrows(run, zeros);
  int64_t messages = 0;
  for (int r = 0; r < run.world(); ++r) {
    JournalCursor cursor(run.path(r));
    RankTimeline timeline(trace, arrows, run.heads[r], zeros[r]);
    if (r == 0) add_counters(disk, run_dir, run, timeline);
    while (const auto record = cursor.next()) timeline.draw(*record);
    timeline.finish();
    messages += timeline.messages();
  }
  const int64_t operations = draw_profiler_traces(disk, run_dir, zeros, track_of_profiler, trace);
  trace.close();
  return out + ": " + std::to_string(run.world()) + (run.world() == 1 ? " rank, " : " ranks, ") +
         std::to_string(messages) + " messages" +
         (operations == 0 ? "" : ", " + std::to_string(operations) + " operators and kernels") +
         "; open it at https://ui.perfetto.dev" + (start == 0 ? ignored_attempts(run_dir) : "");
}

}  // namespace tutti
