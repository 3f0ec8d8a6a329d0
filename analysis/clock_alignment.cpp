#include "analysis/clock_alignment.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "io/journal/journal_reader.h"

namespace tutti {
namespace {

constexpr std::size_t kMeetings = 10'000;  // of a kind; the first ones suffice

struct Times {
  std::vector<TimePoint> entered, left;
};

// What a rank's journal says of its clock.
struct Witness {
  TimePoint began = kNever;
  Times agreements, steps;
};

void note(std::vector<TimePoint>& times, TimePoint time) {
  if (times.size() < kMeetings) times.push_back(time);
}

void note(Witness& witness, const JournalDelivery& delivery) {
  if (delivery.message == kAgreement.entered && delivery.to == name(ActorKind::kSync))
    note(witness.agreements.entered, delivery.time);
  if (delivery.message == kAgreement.left) note(witness.agreements.left, delivery.time);
  if (delivery.message == kStepEnd.entered) note(witness.steps.entered, delivery.time);
}

void note(Witness& witness, const JournalEvent& event) {
  if (event.kind == kStepEnd.left) note(witness.steps.left, event.time);
}

Witness witness_of(const std::string& path) {
  JournalCursor cursor(path);
  Witness witness;
  while (witness.steps.left.size() < kMeetings) {
    const auto record = cursor.next();
    if (!record) break;
    if (const auto* delivery = std::get_if<JournalDelivery>(&*record)) {
      witness.began = std::min(witness.began, delivery->time);
      note(witness, *delivery);
    } else if (const auto* event = std::get_if<JournalEvent>(&*record)) {
      note(witness, *event);
    }
  }
  return witness;
}

// The shifts that no meeting contradicts.
struct Possible {
  Nanoseconds least = Nanoseconds::min(), most = Nanoseconds::max();

  void hold(const Times& first, const Times& other) {
    const std::size_t count =
        std::min({first.entered.size(), first.left.size(), other.entered.size(), other.left.size()});
    for (std::size_t i = 0; i < count; ++i) {
      least = std::max(least, first.entered[i] - other.left[i]);
      most = std::min(most, first.left[i] - other.entered[i]);
    }
  }
  bool known() const { return least > Nanoseconds::min(); }
  Nanoseconds best() const {
    if (least <= Nanoseconds(0) && Nanoseconds(0) <= most) return Nanoseconds(0);
    return least + (most - least) / 2;
  }
};

// By what the clocks on the wall said when the journals began.
Nanoseconds by_the_wall(const RecordedRun& run, int rank, const Witness& first, const Witness& other) {
  if (run.heads[rank].host == run.heads[0].host || first.began == kNever || other.began == kNever)
    return Nanoseconds(0);
  const std::chrono::milliseconds later(run.heads[rank].unix_ms - run.heads[0].unix_ms);
  return later - (other.began - first.began);
}

}  // namespace

std::vector<Nanoseconds> align_clocks(const RecordedRun& run) {
  const Witness first = witness_of(run.path(0));
  std::vector<Nanoseconds> shifts{Nanoseconds(0)};
  for (int r = 1; r < run.world(); ++r) {
    const Witness other = witness_of(run.path(r));
    Possible possible;
    possible.hold(first.agreements, other.agreements);
    possible.hold(first.steps, other.steps);
    shifts.push_back(possible.known() ? possible.best() : by_the_wall(run, r, first, other));
  }
  return shifts;
}

}  // namespace tutti
