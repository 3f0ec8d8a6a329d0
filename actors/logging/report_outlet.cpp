#include "actors/logging/report_outlet.h"

#include <algorithm>

#include "actors/messages/heartbeat.h"
#include "actors/messages/rank_actors.h"
#include "runtime/actor/scheduler.h"

namespace tutti {
namespace {

constexpr Nanoseconds kPatienceStep = std::chrono::milliseconds(1);
constexpr int kRegainedIn = 10;  // times what was waited
constexpr const char* kRoom = "1";
constexpr const char* kNoRoom = "0";

// Beside them a WriteMetrics, the Stop and once what was dropped of a step may be under way; so nobody waits
// for room in the mailbox.
static_assert((ReportOutlet::kMostWindows + 1) * (ReportOutlet::kWindow + 1) + 2 <=
              Scheduler::kDefaultCapacity);

int64_t lines_of(Message& message) { return message.get_if<TextSample>() ? 0 : 1; }

}  // namespace

ReportOutlet::ReportOutlet(const RankActors& cast, Log& log, Recorder& recorder)
    : any_(cast.has_reporter), reporter_(cast.reporter), log_(log), recorder_(recorder) {}

void ReportOutlet::send(Context& context, Message message) {
  if (!any_) return;
  if (const auto* done = message.get_if<StepDone>()) step_ = done->step;
  regain(context.now());
  if (in_window_ == 0) open_ = has_room(context);
  if (open_)
    pass(context, std::move(message));
  else
    drop(std::move(message));
  if (++in_window_ < kWindow) return;
  in_window_ = 0;
  if (open_) underway_.push_back(context.request<ReportsTaken>(reporter_, ReportsSent{}));
}

void ReportOutlet::end(Context& context) {
  auto newest = std::exchange(newest_, {});
  if (!newest.empty()) {
    in_window_ = 0;
    if (newest.front().get_if<StepDone>()) lost_samples_ = 0;
  }
  for (Message& message : newest) {
    lost_ -= lines_of(message);
    send(context, std::move(message));
  }
  if (lost_ > 0)
    log_.warning("metrics.jsonl lost " + std::to_string(lost_) + " lines, for which the disk was too slow");
}

bool ReportOutlet::has_room(Context& context) {
  if (full() && patience_ > Nanoseconds(0)) wait(context);
  return recorder_.answer("room for reports", std::string(full() ? kNoRoom : kRoom)) == kRoom;
}

// Each look costs the same, however long it took: a machine that is so busy that Compute itself hardly runs,
// or a process that was stopped, does not use the patience up.
void ReportOutlet::wait(Context& context) {
  recorder_.record({context.now(), "compute", kWaitsForReports, step_, 0});
  for (; full() && patience_ > Nanoseconds(0); patience_ -= kPatienceStep)
    underway_.front().ready_by(context.now() + kPatienceStep);
  recorder_.record({context.now(), "compute", "waited", step_, 0});
}

bool ReportOutlet::full() {
  while (!underway_.empty() && underway_.front().ready()) underway_.pop_front();
  return underway_.size() >= kMostWindows;
}

void ReportOutlet::regain(TimePoint now) {
  const bool keeps_up = underway_.empty() || underway_.back().ready();
  if (keeps_up) patience_ = std::min<Nanoseconds>(kPatience, patience_ + (now - seen_) / kRegainedIn);
  seen_ = now;
}

// What was dropped of the step that the message is of goes before it.
void ReportOutlet::pass(Context& context, Message message) {
  auto dropped = std::exchange(newest_, {});
  if (message.get_if<StepDone>()) dropped.clear();
  for (Message& one : dropped) {
    lost_ -= lines_of(one);
    if (one.get_if<StepDone>()) lost_samples_ = 0;  // they are in it
    context.send(reporter_, std::move(one));
  }
  if (auto* done = message.get_if<StepDone>()) done->samples += std::exchange(lost_samples_, 0);
  context.send(reporter_, std::move(message));
}

void ReportOutlet::drop(Message message) {
  if (auto* done = message.get_if<StepDone>()) {
    lost_samples_ = done->samples += lost_samples_;
    newest_.clear();
  }
  lost_ += lines_of(message);
  if (lost_ > 0 && !std::exchange(told_, true))
    log_.warning("metrics.jsonl does not keep up; lines are lost");
  if (newest_.size() < kWindow) newest_.push_back(std::move(message));
}

}  // namespace tutti
