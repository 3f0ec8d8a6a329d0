#pragma once

#include <functional>
#include <string>
#include <vector>

#include "recipe/catalog.h"
#include "recipe/time/timestamp.h"

namespace tutti {

// The multiplier of the learning rate for the batch that begins at `now`: a pure function of time.
using Schedule = std::function<double(const Timestamp& now)>;

// Facts of the run that schedules need.
struct Horizon {
  Time max_duration;  // already scaled by the ratio
  int64_t batches_per_epoch = 0;
  double scale_schedule_ratio = 1.0;  // Composer's: scales all times of a schedule except its warm-up
  bool composer = false;              // [compat]: a scaled warm-up ends at its unscaled end
  bool unchecked = false;             // report errors of later times only when reached
  double base_lr = 1.0;               // the optimizer's; the scale of max_lr and eta_min
  Time unscaled_duration = {};        // max_duration before the ratio
};

// Converts a time of a schedule as Composer does: epochs, and fractions of a run in epochs, become batches;
// all but fractions are scaled by `ratio` (max_duration is already scaled). Truncated.
Time convert_time(const Time& time, const Horizon& horizon, double ratio);

// The catalog of [scheduler].
Catalog scheduler_catalog();

// Makes the schedule of [scheduler], Composer's, PyTorch's, transformers' or a plugin's. Throws UserError if
// times do not fit each other or the run.
Schedule make_schedule(const Setting& section, const Horizon& horizon);

// Reads the keys of a [scheduler] and converts its times. Section and horizon must outlive the reader.
class ScheduleReader {
 public:
  ScheduleReader(const Setting& section, const Horizon& horizon) : section_(section), horizon_(horizon) {}

  double number(const char* key) const { return section_.at(key).number(); }
  bool flag(const char* key) const { return section_.at(key).boolean(); }
  Time time(const char* key) const { return converted(section_.at(key)); }
  Time time(const char* key, double ratio) const {
    return convert_time(parsed(section_.at(key)), horizon_, ratio);
  }
  Time positive_time(const char* key) const;
  std::vector<Time> times(const char* key) const;
  // t_max of a schedule with a warm-up. Throws UserError unless t_max has the warm-up's unit and covers the
  // whole training.
  Time end_after(const Time& warmup) const;
  Time max_duration() const { return convert_time({1.0, TimeUnit::kDuration}, horizon_, 1.0); }
  double ratio() const { return horizon_.scale_schedule_ratio; }
  bool composer() const { return horizon_.composer; }
  bool unchecked() const { return horizon_.unchecked; }
  [[noreturn]] void fail(const char* key, const std::string& message) const {
    section_.at(key).fail(message);
  }

 private:
  Time converted(const Setting& s) const {
    return convert_time(parsed(s), horizon_, horizon_.scale_schedule_ratio);
  }
  static Time parsed(const Setting& setting);

  const Setting& section_;
  const Horizon& horizon_;
};

// Composer's schedulers, with the formulas of composer.optim. Empty for other kinds.
Schedule make_composer_schedule(const Setting& section, const Horizon& horizon);
std::vector<Entry> composer_schedulers();

// True if [scheduler] names a scheduler of Composer.
bool is_composer_schedule(const Setting& section);

// warmup_stable_decay. Empty for other kinds.
Schedule make_warmup_stable_decay(const Setting& section, const Horizon& horizon);
Entry warmup_stable_decay();

// The schedulers of torch.optim.lr_scheduler, with their argument names, defaults and rates. Empty for other
// kinds. reduce_lr_on_plateau is constant here: see Plateau.
Schedule make_pytorch_schedule(const Setting& section, const Horizon& horizon);
std::vector<Entry> pytorch_schedulers();

}  // namespace tutti
