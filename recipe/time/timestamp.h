#pragma once

#include "recipe/time/time.h"

namespace tutti {

// A time in training: Composer's Timestamp. Counts are over all ranks. Wall-clock times are rank 0's, in
// seconds, rounded to microseconds.
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

  Time get(TimeUnit unit) const;  // the total; throws UserError for kDuration

  friend bool operator==(const Timestamp&, const Timestamp&) = default;
};

// True if a training of length `max_duration` has ended.
bool reached(const Timestamp& now, const Time& max_duration);

// The fraction of `max_duration` that has passed, 0 at the start, 1 at the end, and of no duration.
double elapsed(const Timestamp& now, const Time& max_duration);

// "Every N units", for evaluations, checkpoints and callbacks. Fires when a multiple of N was reached or
// passed since the previous time, so needs no state. Zero or less never fires. Epochs and iterations are
// checked at their ends, other units at the end of each batch. A fraction of the training (dur) is converted
// to the unit of max_duration, or from epochs to batches, and rounded up.
class Interval {
 public:
  Interval(const Time& every, const Time& max_duration, int64_t batches_per_epoch);

  bool fires() const { return every_ > 0; }  // ever
  // `before`: before the batch (or the epoch's last batch); `now`: after the batch.
  bool at_batch_end(const Timestamp& before, const Timestamp& now) const;
  bool at_epoch_end(const Timestamp& before, const Timestamp& now) const;
  bool at_iteration_end(const Timestamp& before, const Timestamp& now) const;

 private:
  bool crossed(const Timestamp& before, const Timestamp& now) const;

  TimeUnit unit_;
  double every_;  // in unit_
};

}  // namespace tutti
