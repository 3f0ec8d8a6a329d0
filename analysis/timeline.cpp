#include "analysis/timeline.h"

#include <algorithm>

#include "analysis/clock_alignment.h"
#include "analysis/control_arrows.h"
#include "analysis/rank_timeline.h"
#include "io/journal/journal_reader.h"
#include "io/journal/recorded_run.h"
#include "runtime/error.h"

namespace tutti {
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

std::string title(const RecordedJob& head) { return "rank " + std::to_string(head.rank) + ", " + head.host; }

}  // namespace

std::string write_timeline(Disk& disk, const std::string& run_dir, const std::string& out, int64_t start) {
  const RecordedRun run = recorded_run(run_dir, start);
  const auto zeros = trace_starts(run);
  TraceFile trace = make_trace(disk, out);
  ControlArrows arrows(run, zeros);
  int64_t messages = 0;
  for (int r = 0; r < run.world(); ++r) {
    JournalCursor cursor(run.path(r));
    RankTimeline timeline(trace, arrows, r, zeros[r], title(run.heads[r]));
    while (const auto record = cursor.next()) timeline.draw(*record);
    timeline.finish();
    messages += timeline.messages();
  }
  trace.close();
  return out + ": " + std::to_string(run.world()) + (run.world() == 1 ? " rank, " : " ranks, ") +
         std::to_string(messages) + " messages; open it at https://ui.perfetto.dev";
}

}  // namespace tutti
