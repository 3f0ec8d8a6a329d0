#include "actors/logging/log_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "runtime/probe/probe.h"

namespace tutti {
namespace {

// LogFrom, SyncLog and FinishLog have a place beside the entries, so no sender waits for room.
static_assert(LogQueue::kMostMessages + 3 <= LogQueue::kMailboxCapacity);

bool has_step(const std::vector<LogEntry>& entries) {
  return std::ranges::any_of(
      entries, [](const LogEntry& one) { return std::holds_alternative<StepReport>(one.what); });
}

// Evaluations and tables are shown, each of them.
bool is_step_report(const std::vector<LogEntry>& entries) {
  return has_step(entries) && std::ranges::none_of(entries, [](const LogEntry& entry) {
           return std::holds_alternative<EvaluationLogged>(entry.what) ||
                  std::holds_alternative<LoggedTable>(entry.what);
         });
}

// Images and texts are large.
LogEntries numbers_in(const LogEntries& entries) {
  const auto is_large = [](const LogEntry& entry) {
    return std::holds_alternative<LoggedImages>(entry.what) || std::holds_alternative<LoggedText>(entry.what);
  };
  if (std::ranges::none_of(*entries, is_large)) return entries;
  auto numbers = std::make_shared<std::vector<LogEntry>>();
  std::ranges::remove_copy_if(*entries, std::back_inserter(*numbers), is_large);
  return numbers;
}

}  // namespace

void LogQueue::start(Context& context, const LogStart& start) const {
  context.send(to_.writer, LogFrom{start});
}

// A step report replaces the skipped one; other entries come after it.
void LogQueue::send(Context& context, const LogEntries& entries) {
  const LogEntries read = to_.numbers_only ? numbers_in(entries) : entries;
  if (read->empty() || skips(read)) return;
  const LogEntries before = std::exchange(skipped_, nullptr);
  if (before && !has_step(*read)) {
    TUTTI_PROBE("log: a skipped report is shown before other entries");
    post(context, before);
  }
  post(context, read);
}

bool LogQueue::skips(const LogEntries& entries) {
  if (to_.report_interval == Nanoseconds(0) || !is_step_report(*entries)) return false;
  const double now_s = entries->front().time.at.total_wct;
  if (now_s - reported_s_ < seconds(to_.report_interval)) {
    if (skipped_) TUTTI_PROBE("log: the report of a step is replaced before it is shown");
    skipped_ = entries;
    return true;
  }
  reported_s_ = now_s;
  return false;
}

void LogQueue::post(Context& context, const LogEntries& entries) {
  if (*waiting_ < kMostBytes) {
    const int64_t bytes = std::max(bytes_in(*entries), kLeastBytes);
    *waiting_ += bytes;
    return context.send(to_.writer, Logged{entries, bytes, waiting_});
  }
  const bool told = lost_ > 0;
  lost_ += records_in(*entries);
  if (lost_ > 0 && !told) log_.warning(to_.name + " does not keep up; records are lost");
}

void LogQueue::end(Context& context) {
  if (const LogEntries report = std::exchange(skipped_, nullptr)) {
    TUTTI_PROBE("log: a skipped report is shown at the end");
    post(context, report);
  }
  if (lost_ > 0)
    log_.warning(to_.name + " lost " + std::to_string(lost_) + " records, for which it was too slow");
}

}  // namespace tutti
