#pragma once

#include <string>
#include <vector>

#include "training/schedules/schedule.h"

namespace tutti {

// Reads the keys of one [scheduler] and places its times. Both must outlive it.
class ScheduleReader {
 public:
  ScheduleReader(const Setting& section, const Horizon& horizon) : section_(section), horizon_(horizon) {}

  double number(const char* key) const { return section_.at(key).number(); }
  bool flag(const char* key) const { return section_.at(key).boolean(); }
  Time time(const char* key) const { return placed(section_.at(key)); }
  Time time(const char* key, double ratio) const { return place(parsed(section_.at(key)), horizon_, ratio); }
  Time positive_time(const char* key) const;
  std::vector<Time> times(const char* key) const;
  // t_max of a schedule with a warm-up: defined for the whole training, in the warm-up's unit.
  Time end_after(const Time& warmup) const;
  Time max_duration() const { return place({1.0, TimeUnit::kDuration}, horizon_, 1.0); }
  double ratio() const { return horizon_.scale_schedule_ratio; }
  bool composer() const { return horizon_.composer; }
  bool unchecked() const { return horizon_.unchecked; }
  [[noreturn]] void fail(const char* key, const std::string& message) const {
    section_.at(key).fail(message);
  }

 private:
  Time placed(const Setting& s) const { return place(parsed(s), horizon_, horizon_.scale_schedule_ratio); }
  static Time parsed(const Setting& setting);

  const Setting& section_;
  const Horizon& horizon_;
};

}  // namespace tutti
