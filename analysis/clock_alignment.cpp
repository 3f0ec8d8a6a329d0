#include "analysis/clock_alignment.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "io/journal/journal_reader.h"

namespace tutti {
namespace {

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

}  // namespace tutti
