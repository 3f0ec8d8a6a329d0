#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "actors/compute/evaluations.h"
#include "job/job.h"
#include "runtime/clock.h"
#include "training/evaluation/evaluator.h"
#include "training/schedules/learning_rate.h"
#include "training/state.h"

namespace tutti {

// The learning rate, and when evaluations, checkpoints and the ends of iterations are due. Listeners may
// change max_duration.
class Timetable {
 public:
  // All references must outlive this.
  Timetable(const Job& job, State& state, Evaluations& evaluations);

  // Plans for State::max_duration. Throws UserError.
  void plan();
  // Plans again if State::max_duration has changed.
  void follow_max_duration();

  LearningRate& rate() { return rate_; }
  const LearningRate& rate() const { return rate_; }
  // After a batch or an epoch that began at `before`.
  void advance(const Timestamp& before);
  void advance_epoch(const Timestamp& before);
  // Metrics of an evaluation. True if they lower the learning rate.
  bool observe(const LoggedMetrics& metrics) { return rate_.observe(metrics); }
  // Of the next batch.
  double lr() const { return state_.next_lr ? *state_.next_lr : state_.services->scheduled_lr(); }

  // Training begins; `earlier_s`: seconds trained before this process. Evaluations and predictions are not
  // counted, as in Composer.
  void begin(TimePoint now, double earlier_s) {
    began_ = now;
    earlier_s_ = earlier_s;
  }
  void exclude(double s) { excluded_s_ += s; }
  double seconds_trained(TimePoint now) const {
    return earlier_s_ + seconds(now - began_) - evaluations_.seconds() - excluded_s_;
  }

  bool over() const { return reached(state_.timestamp, state_.max_duration); }
  // [train] stop_at has come: the run ends here, and may be resumed.
  bool stops_here() const { return stop_at_.value() > 0 && !over() && reached(state_.timestamp, stop_at_); }
  bool epoch_is_over() const { return state_.timestamp.batch_in_epoch >= state_.dataloader_len; }
  bool iteration_is_over() const {
    const int64_t length = job_.settings.train.iteration_length;
    return length > 0 && state_.timestamp.epoch_in_iteration >= length;
  }
  // `before`: the time before the batch, or before the epoch's end.
  bool checkpoint_at_batch_end(const Timestamp& before) const {
    return checkpoint_every_->at_batch_end(before, state_.timestamp);
  }
  bool checkpoint_at_epoch_end(const Timestamp& before) const {
    return checkpoint_every_->at_epoch_end(before, state_.timestamp);
  }
  // The logged name of the metric of [checkpoint] best, or "".
  const std::string& best_metric() const { return best_metric_; }
  bool checkpoints_fire() const { return checkpoint_every_->fires(); }

 private:
  void set_logged_rate();

  const Job& job_;
  State& state_;
  Evaluations& evaluations_;
  Time planned_duration_;  // max_duration at the last plan
  Time stop_at_;           // never a fraction
  LearningRate rate_;
  std::optional<Interval> checkpoint_every_;
  std::string best_metric_;
  TimePoint began_;  // training, in this process
  double earlier_s_ = 0, excluded_s_ = 0;
};

}  // namespace tutti
