#include "training/schedules/schedule.h"

#include <cmath>

#include "training/schedules/composer.h"
#include "training/schedules/pytorch.h"

namespace tutti {

Time place(const Time& time, const Horizon& horizon, double ratio) {
  const auto batches = [&](double epochs) { return epochs * static_cast<double>(horizon.batches_per_epoch); };
  // Products are taken in Composer's order: another one may round, and truncate, otherwise.
  if (time.unit() == TimeUnit::kDuration) {
    const Time& whole = horizon.max_duration;
    if (whole.unit() != TimeUnit::kEpoch) return whole * time;
    return {std::trunc(batches(time.value()) * whole.value()), TimeUnit::kBatch};
  }
  if (time.unit() == TimeUnit::kEpoch) return Time(batches(time.value()), TimeUnit::kBatch) * ratio;
  return time * ratio;
}

Schedule make_schedule(const Setting& section, const Horizon& horizon) {
  if (Schedule schedule = make_composer_schedule(section, horizon)) return schedule;
  if (Schedule schedule = make_pytorch_schedule(section, horizon)) return schedule;
  section.at("kind").fail("there is no such scheduler");
}

}  // namespace tutti
