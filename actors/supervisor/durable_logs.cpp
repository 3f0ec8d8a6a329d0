#include "actors/supervisor/durable_logs.h"

namespace tutti {
namespace {

constexpr char kYes = '1';
constexpr char kNo = '0';

}  // namespace

DurableLogs::DurableLogs(const std::vector<LogActor>& logs, Log& log, Recorder& recorder)
    : log_(log), recorder_(recorder) {
  for (const auto& one : logs)
    if (one.sync_timeout > Nanoseconds(0))
      logs_.push_back({one.writer, one.name, WaitBudget(one.sync_timeout, kOrdinary)});
}

// Which messages are sent hangs on how fast a disk was: a replay must come to the same.
std::string DurableLogs::decided(RecordedInput what, const std::string& measured) {
  const std::string recorded = recorder_.input(what, measured);
  return recorded.size() == measured.size() ? recorded : measured;
}

// A log that has not answered yet is not asked again: its mailbox would fill.
void DurableLogs::sync(Context& context, const std::string& checkpoint) {
  if (logs_.empty()) return;
  std::string measured;
  for (const auto& one : logs_) measured += one.syncing && !one.syncing.ready() ? kNo : kYes;
  const std::string asked = decided(RecordedInput::kLogsAsked, measured);
  for (std::size_t i = 0; i < logs_.size(); ++i)
    if (asked[i] == kYes) logs_[i].syncing = context.request<LogSynced>(logs_[i].writer, SyncLog{});
  Nanoseconds waited{};
  measured.clear();
  for (std::size_t i = 0; i < logs_.size(); ++i) {
    One& one = logs_[i];
    one.budget.regain(context.now(), /*keeps_up=*/true, std::ssize(logs_));
    if (asked[i] == kYes) one.budget.wait(context, one.syncing, waited);
    measured += asked[i] == kYes && one.syncing.ready() ? kYes : kNo;
  }
  const std::string written = decided(RecordedInput::kLogsWritten, measured);
  for (std::size_t i = 0; i < logs_.size(); ++i) {
    const bool late = written[i] == kNo;
    if (late && !logs_[i].late)
      log_.warning("checkpoint " + checkpoint + " does not wait for " + logs_[i].name +
                   ", which is slow to write, nor do those after it until it keeps up; a run that resumes "
                   "from them may lack records of it");
    logs_[i].late = late;
  }
}

}  // namespace tutti
