#include "recipe/time/timestamp.h"

#include <cmath>

namespace tutti {
namespace {

// As Python's timedelta, which counts microseconds, so that sums do not drift. Never -0.
double in_whole_microseconds(double seconds) { return std::nearbyint(seconds * 1e6) / 1e6 + 0.0; }

}  // namespace

void Timestamp::to_next_batch(int64_t samples, int64_t tokens, double seconds) {
  ++batch;
  ++batch_in_epoch;
  sample += samples;
  sample_in_epoch += samples;
  token += tokens;
  token_in_epoch += tokens;
  token_in_iteration += tokens;
  batch_wct = in_whole_microseconds(seconds);
  for (double* const sum : {&total_wct, &iteration_wct, &epoch_wct})
    *sum = in_whole_microseconds(*sum + batch_wct);
}

void Timestamp::to_next_epoch() {
  ++epoch;
  ++epoch_in_iteration;
  batch_in_epoch = sample_in_epoch = token_in_epoch = 0;
  epoch_wct = batch_wct = 0.0;
}

void Timestamp::to_next_iteration() {
  ++iteration;
  epoch_in_iteration = token_in_iteration = 0;
  batch_in_epoch = sample_in_epoch = token_in_epoch = 0;
  iteration_wct = epoch_wct = batch_wct = 0.0;
}

Time Timestamp::get(TimeUnit unit) const {
  const auto whole = [unit](int64_t count) { return Time(static_cast<double>(count), unit); };
  switch (unit) {
    case TimeUnit::kIteration:
      return whole(iteration);
    case TimeUnit::kEpoch:
      return whole(epoch);
    case TimeUnit::kBatch:
      return whole(batch);
    case TimeUnit::kSample:
      return whole(sample);
    case TimeUnit::kToken:
      return whole(token);
    case TimeUnit::kSecond:
      return Time(std::trunc(total_wct), unit);
    case TimeUnit::kDuration:
      break;
  }
  throw UserError("a moment of training has no value in \"dur\", which is a fraction of the whole");
}

bool reached(const Timestamp& now, const Time& max_duration) {
  return now.get(max_duration.unit()) >= max_duration;
}

double elapsed(const Timestamp& now, const Time& max_duration) {
  if (max_duration.value() == 0) return 1;
  return (now.get(max_duration.unit()) / max_duration).value();
}

// Products are in Composer's order, since another order may round differently.
Interval::Interval(const Time& every, const Time& max_duration, int64_t batches_per_epoch)
    : unit_(every.unit()), every_(every.value()) {
  if (unit_ != TimeUnit::kDuration) return;
  unit_ = max_duration.unit();
  every_ = max_duration.value() * every_;
  if (unit_ == TimeUnit::kEpoch) {
    unit_ = TimeUnit::kBatch;
    every_ *= static_cast<double>(batches_per_epoch);
  }
  every_ = std::ceil(every_);
}

bool Interval::at_batch_end(const Timestamp& before, const Timestamp& now) const {
  return unit_ != TimeUnit::kEpoch && unit_ != TimeUnit::kIteration && crossed(before, now);
}

bool Interval::at_epoch_end(const Timestamp& before, const Timestamp& now) const {
  return unit_ == TimeUnit::kEpoch && crossed(before, now);
}

bool Interval::at_iteration_end(const Timestamp& before, const Timestamp& now) const {
  return unit_ == TimeUnit::kIteration && crossed(before, now);
}

bool Interval::crossed(const Timestamp& before, const Timestamp& now) const {
  if (every_ <= 0.0) return false;
  const auto multiples = [this](const Timestamp& t) { return std::floor(t.get(unit_).value() / every_); };
  return multiples(now) > multiples(before);
}

}  // namespace tutti
