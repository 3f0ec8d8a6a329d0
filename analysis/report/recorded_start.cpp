#include "analysis/report/recorded_start.h"

#include <algorithm>

#include "io/journal/journal_reader.h"
#include "runtime/error.h"

namespace tutti {
namespace {

// Reads one rank's journal.
class RankReader {
 public:
  RankReader(StartSummary& start, int rank) : start_(start), rank_(rank) { mine_.rank = rank; }

  RankSummary read(const std::string& path) try {
    JournalCursor cursor(path);
    RankWork work(timer_, start_.job.world, TimePoint());
    while (const auto record = cursor.next()) {
      if (const auto* delivery = std::get_if<JournalDelivery>(&*record))
        work.read(*delivery);
      else if (const auto* event = std::get_if<JournalEvent>(&*record))
        note(*event, work);
      else
        note(*record);
    }
    work.finish();
    mine_.times = timer_.times();
    return mine_;
  } catch (const RunError& error) {
    mine_.incomplete = error.what();
    return mine_;
  }

 private:
  void note(const JournalRecord& record) {
    if (const auto* end = std::get_if<JournalEnd>(&record)) mine_.end = end->text;
    if (const auto* cut = std::get_if<JournalIncomplete>(&record)) mine_.incomplete = cut->why;
    if (const auto* head = std::get_if<JournalHead>(&record)) {
      const RecordedJob job = RecordedJob::from_json(head->json);
      mine_.host = job.host;
      if (rank_ == 0) start_.job = job;
    }
  }

  // All ranks skip a step; each runs out of memory, and rank 0 alone publishes checkpoints.
  void note(const JournalEvent& event, RankWork& work) {
    work.read(event);
    const TraceKind* kind = trace_kind(event.kind);
    if (!kind) return;
    if (*kind == TraceKind::kBatch) step_ = event.step + 1;
    if (rank_ == 0 && *kind == TraceKind::kBatch) {
      start_.steps.last = step_;
      if (start_.steps.first == 0) start_.steps.first = step_;
    }
    const bool counts = *kind == TraceKind::kOutOfMemory || *kind == TraceKind::kCheckpointFailed ||
                        (*kind == TraceKind::kSkipped && rank_ == 0);
    if (counts) start_.faults.push_back({step_, rank_, *kind});
  }

  StartSummary& start_;
  int rank_;
  int64_t step_ = 0;
  WorkTimer timer_;
  RankSummary mine_;
};

// The world is in the head, which the rank's reader needs from the beginning.
int world_of(const std::string& path) try {
  JournalCursor cursor(path);
  const auto record = cursor.next();
  const auto* head = record ? std::get_if<JournalHead>(&*record) : nullptr;
  return head ? RecordedJob::from_json(head->json).world : 1;
} catch (const RunError&) {
  return 1;
}

}  // namespace

StartSummary summary_of_start(const std::string& folder) {
  StartSummary start;
  start.job.world = world_of(journal_path(folder, 0));
  for (int rank = 0; rank < start.job.world; ++rank)
    start.ranks.push_back(RankReader(start, rank).read(journal_path(folder, rank)));
  std::ranges::stable_sort(start.faults, {}, &StepFault::step);
  return start;
}

}  // namespace tutti
