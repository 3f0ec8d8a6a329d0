#include "actors/logging/log_queues.h"

#include <algorithm>
#include <utility>

#include "runtime/actor/scheduler.h"

namespace tutti {
namespace {

constexpr char kRoom = '1';
constexpr char kNoRoom = '0';

// Besides windows a mailbox may hold the dropped entries of a step, LogFrom, SyncLog and Stop. So no sender
// ever waits for room.
static_assert((LogQueues::kMostWindows + 2) * LogQueues::kWindow + 3 <= Scheduler::kDefaultCapacity);

bool has_step(const std::vector<LogEntry>& entries) {
  return std::ranges::any_of(
      entries, [](const LogEntry& one) { return std::holds_alternative<StepReport>(one.what); });
}

// Evaluations and tables are shown, each of them.
bool is_step_report(const std::vector<LogEntry>& entries) {
  return has_step(entries) && std::ranges::none_of(entries, [](const LogEntry& one) {
           return std::holds_alternative<EvaluationLogged>(one.what) ||
                  std::holds_alternative<LoggedTable>(one.what);
         });
}

}  // namespace

LogQueues::LogQueues(const RankActors& actors, Log& log, Recorder& recorder)
    : log_(log), recorder_(recorder) {
  for (const auto& one : actors.logs)
    queues_.push_back({.writer = one.writer,
                       .name = one.name,
                       .budget = WaitBudget(one.full_queue_timeout),
                       .report_interval = one.report_interval});
}

void LogQueues::start(Context& context, const LogStart& start) {
  for (const auto& queue : queues_) context.send(queue.writer, LogFrom{start});
}

void LogQueues::send(Context& context, std::vector<LogEntry> entries) {
  if (queues_.empty() || entries.empty()) return;
  post(context, std::make_shared<const std::vector<LogEntry>>(std::move(entries)));
}

void LogQueues::post(Context& context, const LogEntries& entries) {
  step_ = entries->front().time.step;
  if (in_window_ == 0) decide(context);
  in_window_ = (in_window_ + 1) % kWindow;
  for (auto& queue : queues_) {
    if (!queue.open) {
      drop(queue, entries);
      continue;
    }
    queue.newest.clear();
    if (in_window_ == 0)
      queue.windows.push_back(context.request<LogsTaken>(queue.writer, Logged{queue.with_skipped(entries)}));
    else if (!queue.skips(entries))
      context.send(queue.writer, Logged{queue.with_skipped(entries)});
  }
}

void LogQueues::decide(Context& context) {
  std::string measured;
  for (auto& queue : queues_) {
    const bool full = queue.is_full();
    queue.budget.regain(context.now(), queue.windows.size() <= 1);
    if (full && !queue.budget.is_used_up()) wait(context, queue);
    measured += queue.is_full() ? kNoRoom : kRoom;
  }
  const std::string decided = recorder_.input(RecordedInput::kLogRoom, measured);
  for (std::size_t i = 0; i < queues_.size(); ++i) queues_[i].open = decided.at(i) == kRoom;
}

void LogQueues::wait(Context& context, Queue& queue) {
  Nanoseconds waited{};
  recorder_.record({context.now(), TraceKind::kWaitsForLogs, step_});
  queue.budget.wait(context, queue.windows.front(), waited);
  recorder_.record({context.now(), TraceKind::kWaited, step_});
}

bool LogQueues::Queue::is_full() {
  while (!windows.empty() && windows.front().ready()) windows.pop_front();
  return std::ssize(windows) >= kMostWindows;
}

// Training time is a recorded input, so a replay skips the same reports.
bool LogQueues::Queue::skips(const LogEntries& entries) {
  if (report_interval == Nanoseconds(0) || !is_step_report(*entries)) return false;
  const double now_s = entries->front().time.at.total_wct;
  if (now_s - reported_s < seconds(report_interval)) {
    skipped = entries;
    return true;
  }
  reported_s = now_s;
  return false;
}

// A step report replaces the skipped one; other entries come after it.
LogEntries LogQueues::Queue::with_skipped(const LogEntries& entries) {
  const LogEntries before = std::exchange(skipped, nullptr);
  if (!before || has_step(*entries)) return entries;
  auto all = std::make_shared<std::vector<LogEntry>>(*before);
  all->insert(all->end(), entries->begin(), entries->end());
  return all;
}

void LogQueues::drop(Queue& queue, const LogEntries& entries) {
  queue.skipped = nullptr;
  queue.lost += records_in(*entries);
  if (queue.lost > 0 && !std::exchange(queue.warned, true))
    log_.warning(queue.name + " does not keep up; records are lost");
  if (has_step(*entries)) queue.newest.clear();
  if (queue.newest.size() < kWindow) queue.newest.push_back(entries);
}

void LogQueues::end(Context& context) {
  if (queues_.empty()) return;
  in_window_ = 0;
  decide(context);
  for (auto& queue : queues_) {
    if (const LogEntries report = std::exchange(queue.skipped, nullptr); report && queue.open)
      context.send(queue.writer, Logged{report});
    for (const auto& entries : std::exchange(queue.newest, {})) {
      if (!queue.open) break;
      queue.lost -= records_in(*entries);
      context.send(queue.writer, Logged{entries});
    }
    if (const int64_t lost = std::exchange(queue.lost, 0); lost > 0)
      log_.warning(queue.name + " lost " + std::to_string(lost) + " records, for which it was too slow");
  }
}

}  // namespace tutti
