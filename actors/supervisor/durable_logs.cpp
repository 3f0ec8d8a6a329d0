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

// The messages sent depend on the speed of the disk, so a replay uses recorded inputs.
std::string DurableLogs::recorded(RecordedInput input, const std::string& measured) {
  std::string found = recorder_.input(input, measured);
  return found.size() == measured.size() ? found : measured;
}

// A log that has not replied yet gets no second request, which would fill its mailbox.
void DurableLogs::sync(Context& context, const std::string& checkpoint) {
  if (logs_.empty()) return;
  std::string measured;
  for (const auto& one : logs_) measured += one.syncing && !one.syncing.ready() ? kNo : kYes;
  const std::string asked = recorded(RecordedInput::kLogsAsked, measured);
  for (std::size_t i = 0; i < logs_.size(); ++i)
    if (asked[i] == kYes) logs_[i].syncing = context.request<LogSynced>(logs_[i].writer, SyncLog{});
  Nanoseconds waited{};
  measured.clear();
  for (std::size_t i = 0; i < logs_.size(); ++i) {
    DurableLog& one = logs_[i];
    one.budget.regain(context.now(), /*keeps_up=*/true, std::ssize(logs_));
    if (asked[i] == kYes) one.budget.wait(context, one.syncing, waited);
    measured += asked[i] == kYes && one.syncing.ready() ? kYes : kNo;
  }
  const std::string written = recorded(RecordedInput::kLogsWritten, measured);
  for (std::size_t i = 0; i < logs_.size(); ++i) {
    const bool late = written[i] == kNo;
    if (late && !logs_[i].late)
      log_.warning("checkpoint " + checkpoint + " does not wait for " + logs_[i].name +
                   ", which is slow to write, nor do later checkpoints until it keeps up; a run that "
                   "resumes from them may miss its records");
    logs_[i].late = late;
  }
}

}  // namespace tutti
