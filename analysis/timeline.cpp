#include "analysis/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/clock_alignment.h"
#include "analysis/control_arrows.h"
#include "analysis/metrics_table.h"
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
  const MetricsColumn* found = metrics.find(column);
  for (std::size_t i = 0; found && i < found->steps.size(); ++i)
    if (found->steps[i] < end && std::isfinite(found->values[i]))
      counter.values.emplace(found->steps[i], found->values[i]);
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
  trace.close();
  return out + ": " + std::to_string(run.world()) + (run.world() == 1 ? " rank, " : " ranks, ") +
         std::to_string(messages) + " messages; open it at https://ui.perfetto.dev" +
         (start == 0 ? ignored_attempts(run_dir) : "");
}

}  // namespace tutti
