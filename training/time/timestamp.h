#pragma once

#include "training/time/time.h"

namespace tutti {

// Where training stands: Composer's Timestamp. Counts are of all ranks together; the wall-clock sums
// (seconds, to the microsecond) are rank 0's.
struct Timestamp {
  int64_t iteration = 0;
  int64_t epoch = 0;
  int64_t batch = 0;
  int64_t sample = 0;
  int64_t token = 0;
  int64_t epoch_in_iteration = 0;
  int64_t token_in_iteration = 0;
  int64_t batch_in_epoch = 0;
  int64_t sample_in_epoch = 0;
  int64_t token_in_epoch = 0;
  double total_wct = 0.0;
  double iteration_wct = 0.0;
  double epoch_wct = 0.0;
  double batch_wct = 0.0;

  void to_next_batch(int64_t samples, int64_t tokens, double seconds);
  void to_next_epoch();
  void to_next_iteration();

  Time get(TimeUnit unit) const;  // total in that unit; kDuration has none: UserError

  friend bool operator==(const Timestamp&, const Timestamp&) = default;
};

// Whether training of length `max_duration` ends here.
bool reached(const Timestamp& now, const Time& max_duration);

// The part of `max_duration` that has passed, 0 at the start, 1 at the end.
double elapsed(const Timestamp& now, const Time& max_duration);

// "Every N units", for evaluations, checkpoints and callbacks. Epochs and iterations are looked at where one
// ends, the other units where a batch ends, and a fraction of the training (dur) in the unit
// of its maximum, rounded up, but in batches where that is in epochs.
// It fires when a multiple has been reached or passed since the last look, so it needs no state. Zero or less
// never fires.
class Interval {
 public:
  Interval(const Time& every, const Time& max_duration, int64_t batches_per_epoch);

  bool fires() const { return every_ > 0; }  // ever
  // `before` is the timestamp before the batch (or the epoch's last batch), `now` the one after it.
  bool at_batch_end(const Timestamp& before, const Timestamp& now) const;
  bool at_epoch_end(const Timestamp& before, const Timestamp& now) const;
  bool at_iteration_end(const Timestamp& before, const Timestamp& now) const;

 private:
  bool crossed(const Timestamp& before, const Timestamp& now) const;

  TimeUnit unit_;
  double every_;  // in unit_
};

}  // namespace tutti
