#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/work.h"
#include "io/formats/trace_file.h"
#include "io/journal/journal.h"

namespace tutti {

// Receives a rank's work as slices of tracks, a track for each actor and a track for the steps. Slices of a
// track nest, at most two deep; times on a track never decrease.
class WorkSink {
 public:
  using Args = TraceFile::Args;

  virtual ~WorkSink() = default;
  virtual void add_track(int, std::string_view) {}
  virtual void begin(int track, Activity work, std::string_view name, Nanoseconds time, const Args& args) = 0;
  virtual void end(int track, Nanoseconds time) = 0;
  virtual void mark(int, std::string_view, Nanoseconds, const Args&) {}
  // The two ends of a message, at the time of its delivery, within slices.
  virtual void leave(int, const JournalDelivery&, Nanoseconds) {}
  virtual void arrive(int, const JournalDelivery&, Nanoseconds) {}
  virtual void step_done(int64_t, Nanoseconds) {}
};

// Finds the work of a rank's actors, record by record of the rank's journal. A message begins a slice of its
// receiver, up to the actor's last record before the next message; events are slices within. Compute has no
// slices of messages in a step, but of its work, waiting included:
// - the wait for data, if the batch was not ready at Compute's last sign of the step before;
// - the wait for the all-reduce, from the end of backward to Sync's verdict, and then the update.
class RankWork {
 public:
  static constexpr int kSteps = 1;  // the track of the steps

  struct Place {
    int track = 0;
    Nanoseconds time{};
  };

  // `zero`: the time 0 of the slices, by the rank's clock.
  RankWork(WorkSink& sink, int world, TimePoint zero) : sink_(sink), world_(world), zero_(zero) {}

  void read(const JournalDelivery& delivery);
  Place read(const JournalEvent& event);
  void finish();  // after the last record: ends all slices

  int64_t messages() const { return messages_; }
  Nanoseconds last_time() const;

 private:
  struct Track {
    int id = 0;
    Nanoseconds last{};                     // of the last record
    bool message = false, part = false;     // slices that are open: of a message, and within
    bool seen = false;                      // a record was read
    bool waits = false;                     // the part lasts until the next record
    Activity work = Activity::kCoordinate;  // of the part
    std::string name;                       // of the part
  };

  Track& track_of(std::string_view actor);
  Track* compute();  // null before its first record
  Nanoseconds monotonic(const Track& track, TimePoint time) const;
  void touch(Track& track, Nanoseconds time);
  void begin_message(Track& track, const JournalDelivery& delivery, Nanoseconds time);
  void begin_part(Track& track, Activity work, const std::string& name, Nanoseconds time,
                  const WorkSink::Args& args = {});
  void end_part(Track& track, Nanoseconds time);
  void end_all(Track& track, Nanoseconds time);
  void take_batch(Track& track, Nanoseconds time);
  void draw(Track& track, TraceKind kind, const JournalEvent& event, Nanoseconds before);
  void follow(TraceKind kind, const JournalEvent& event, Nanoseconds time);
  void follow(const JournalDelivery& delivery, Nanoseconds time);
  void end_pass(Track& compute, TraceKind kind, Nanoseconds time);
  void wait_for_gather(Track& compute, Nanoseconds time);
  void continue_with(Activity from, Activity next, const std::string& name, Nanoseconds time);
  WorkSink::Args step_args() const;
  void begin_step_slice(Activity work, const std::string& name, Nanoseconds time);
  void end_step_slice(Nanoseconds time);

  WorkSink& sink_;
  int world_;
  TimePoint zero_;
  std::map<std::string, Track, std::less<>> tracks_;
  std::deque<Nanoseconds> ready_;  // when the batches that Compute has not taken were ready
  Nanoseconds step_began_{};
  int64_t step_ = 0;     // of Compute
  int64_t gathers_ = 0;  // of units, under way
  Activity paused_ = Activity::kStepEnd;
  std::string paused_name_;
  enum class StepSlice : uint8_t { kNone, kStep, kEvaluation } step_slice_ = StepSlice::kNone;
  bool has_steps_ = false;
  bool done_ = false;  // training has ended: batches that come now are left over
  int64_t messages_ = 0;
};

// The seconds that actors of a rank spent on each kind of work; an inner slice counts for its own kind alone.
struct WorkTimes {
  using Seconds = std::array<double, kActivities>;  // by Activity

  Seconds compute{};  // adds up to Compute's time
  Seconds beside{};   // of the other actors, which work at the same time

  void add(const WorkTimes& other);
};

// Adds up the slices of a rank.
class WorkTimer final : public WorkSink {
 public:
  void add_track(int track, std::string_view actor) override;
  void begin(int track, Activity work, std::string_view name, Nanoseconds time, const Args& args) override;
  void end(int track, Nanoseconds time) override;

  const WorkTimes& times() const { return times_; }

 private:
  struct Track {
    WorkTimes::Seconds* to = nullptr;  // null: the steps
    std::vector<Activity> open;
    Nanoseconds last{};
  };

  static void count(Track& track, Nanoseconds time);

  WorkTimes times_;
  std::map<int, Track> tracks_;
};

}  // namespace tutti
