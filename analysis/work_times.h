#pragma once

#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "analysis/rank_work.h"

namespace tutti {

// The seconds that actors of a rank spent on each kind of work; slices within others count for themselves
// alone.
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
