#pragma once

#include <functional>
#include <string>
#include <vector>

#include "training/time/timestamp.h"

namespace tutti {

// What the learning rate of the batch that begins at `now` is multiplied by: a pure function of time.
using Schedule = std::function<double(const Timestamp& now)>;

// What a schedule must know of the run.
struct Horizon {
  Time max_duration;  // as it will be trained: scaled by the ratio already
  int64_t batches_per_epoch = 0;
  double scale_schedule_ratio = 1.0;  // Composer's: stretches every time of a schedule but its warm-up
  bool composer = false;              // [compat]: a scaled warm-up is left when it would have ended unscaled
  bool unchecked = false;             // what goes wrong later in the training is an error then, not at once
  double base_lr = 1.0;         // the optimizer's, which schedules of rates (max_lr, eta_min) are told by
  Time unscaled_duration = {};  // max_duration before the ratio
};

// A time of a schedule as Composer places it: epochs and, where the run is counted in epochs, fractions of
// the training become batches; others are scaled by `ratio`, but not fractions, whose whole is scaled
// already. Whole, truncated.
Time place(const Time& time, const Horizon& horizon, double ratio);

// What [scheduler] names, Composer's or PyTorch's (training/schedules). Throws UserError where its times do
// not fit together or do not fit the run.
Schedule make_schedule(const Setting& section, const Horizon& horizon);

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

// Composer's schedulers; formulas as in composer.optim. Empty where [scheduler] names none of them.
Schedule make_composer_schedule(const Setting& section, const Horizon& horizon);

// Whether [scheduler] names one of them.
bool is_composer_schedule(const Setting& section);

// PyTorch's schedulers, with the rates of torch.optim.lr_scheduler. Empty where [scheduler] names none of
// them. Of reduce_lr_on_plateau a function of time knows nothing but 1: see Plateau.
Schedule make_pytorch_schedule(const Setting& section, const Horizon& horizon);

}  // namespace tutti
