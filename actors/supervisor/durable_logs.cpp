#include "actors/supervisor/durable_logs.h"

#include <algorithm>

namespace tutti {
namespace {

constexpr Nanoseconds kAskAgain = std::chrono::milliseconds(1);
constexpr int kMostDoublings = 20;
constexpr int kPatienceRegainedIn = 10;  // times what was waited
constexpr char kYes = '1';
constexpr char kNo = '0';

}  // namespace

DurableLogs::DurableLogs(const std::vector<DurableLog>& logs, Log& log, Recorder& recorder)
    : log_(log), recorder_(recorder) {
  for (const auto& one : logs) logs_.push_back({one});
}

// Which messages are sent hangs on how fast a disk was: a replay must come to the same.
std::string DurableLogs::decided(const char* what, const std::string& measured) {
  const std::string said = recorder_.answer(what, measured);
  return said.size() == measured.size() ? said : measured;
}

// A log that has not answered yet is not asked again: its mailbox would fill.
std::string DurableLogs::due() {
  std::string marks;
  for (auto& one : logs_) {
    const bool spared = one.spare > 0;
    if (spared) --one.spare;
    marks += spared || (one.writing && !one.writing.ready()) ? kNo : kYes;
  }
  return marks;
}

std::string DurableLogs::done() const {
  std::string marks;
  for (const auto& one : logs_) marks += one.writing && one.writing.ready() ? kYes : kNo;
  return marks;
}

void DurableLogs::regain(TimePoint now) {
  const Nanoseconds back = (now - seen_) / (kPatienceRegainedIn * std::ssize(logs_));
  for (auto& one : logs_) one.patience = std::min(one.log.wait_at_most, one.patience + back);
  seen_ = now;
}

// Each look costs the same, however long it took: a machine that is busy does not use the patience up.
bool DurableLogs::One::is_waited_for() {
  if (writing.ready() || waited >= log.wait_at_most) return false;
  Nanoseconds& left = ordinary > Nanoseconds(0) ? ordinary : patience;
  if (left <= Nanoseconds(0)) return false;
  left -= kAskAgain;
  waited += kAskAgain;
  return true;
}

void DurableLogs::wait(Context& context, const std::string& asked) {
  regain(context.now());
  for (auto& one : logs_) {
    one.ordinary = kOrdinary;
    one.waited = {};
  }
  for (One* last = nullptr;; last = nullptr) {
    for (std::size_t i = 0; i < logs_.size(); ++i)
      if (asked[i] == kYes && logs_[i].is_waited_for()) last = &logs_[i];
    if (!last) return;
    last->writing.ready_by(context.now() + kAskAgain);
  }
}

void DurableLogs::sync(Context& context, const std::string& checkpoint) {
  if (logs_.empty()) return;
  const std::string asked = decided("logs asked", due());
  for (std::size_t i = 0; i < logs_.size(); ++i)
    if (asked[i] == kYes)
      logs_[i].writing = context.request<MetricsWritten>(logs_[i].log.writer, WriteMetrics{});
  wait(context, asked);
  const std::string written = decided("logs written", done());
  for (std::size_t i = 0; i < logs_.size(); ++i) {
    One& one = logs_[i];
    if (asked[i] == kNo) continue;
    one.late = written[i] == kYes ? 0 : std::min(one.late + 1, kMostDoublings);
    one.spare = (int64_t{1} << one.late) - 1;
    if (one.late > 0)
      log_.warning("checkpoint " + checkpoint + " does not wait for " + one.log.name +
                   ", which is slow to write; a run that goes on from it may lack records of that");
  }
}

}  // namespace tutti
