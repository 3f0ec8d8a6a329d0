#include "training/schedules/schedule.h"

#include <cmath>
#include <utility>

#include "recipe/plugin_maker.h"

namespace tutti {

Time convert_time(const Time& time, const Horizon& horizon, double ratio) {
  const auto batches = [&](double epochs) { return epochs * static_cast<double>(horizon.batches_per_epoch); };
  // The order of multiplication is Composer's: another order may round differently.
  if (time.unit() == TimeUnit::kDuration) {
    const Time& whole = horizon.max_duration;
    if (whole.unit() != TimeUnit::kEpoch) return whole * time;
    return {std::trunc(batches(time.value()) * whole.value()), TimeUnit::kBatch};
  }
  if (time.unit() == TimeUnit::kEpoch) return Time(batches(time.value()), TimeUnit::kBatch) * ratio;
  return time * ratio;
}

Catalog scheduler_catalog() {
  std::vector<Entry> entries = composer_schedulers();
  for (Entry& entry : pytorch_schedulers()) entries.push_back(std::move(entry));
  entries.push_back(warmup_stable_decay());
  entries.push_back(plugin_entry("scheduler"));
  return {.section = "scheduler",
          .noun = "scheduler",
          .doc =
              "The schedule of the learning rate. Names and meanings are Composer's; kinds with lr in the "
              "name are PyTorch's, and count steps of the scheduler.",
          .entries = std::move(entries),
          .default_kind = "constant"};
}

Schedule make_schedule(const Setting& section, const Horizon& horizon) {
  if (is_of_plugin(section)) return made_by_plugin<Schedule>(section, horizon);
  if (Schedule schedule = make_composer_schedule(section, horizon)) return schedule;
  if (Schedule schedule = make_pytorch_schedule(section, horizon)) return schedule;
  if (Schedule schedule = make_warmup_stable_decay(section, horizon)) return schedule;
  section.at("kind").fail("there is no such scheduler");
}

// No wall-clock times: two runs of a recipe must have equal learning rates.
Time ScheduleReader::parsed(const Setting& setting) {
  const Time time = Time::parse(setting);
  if (time.unit() == TimeUnit::kSecond) setting.fail("a schedule cannot be timed by the wall clock");
  return time;
}

Time ScheduleReader::positive_time(const char* key) const {
  const Time value = time(key);
  if (value.value() <= 0.0) fail(key, "expected a time longer than " + value.text());
  return value;
}

std::vector<Time> ScheduleReader::times(const char* key) const {
  std::vector<Time> times;
  for (const Setting& item : section_.at(key).array()) times.push_back(converted(item));
  return times;
}

Time ScheduleReader::end_after(const Time& warmup) const {
  const Time end = time("t_max");
  if (end.unit() != warmup.unit())
    fail("t_max",
         std::string("t_warmup counts in ") + suffix(warmup.unit()) + " and t_max in " + suffix(end.unit()));
  const Time whole = max_duration();
  if (end.unit() == whole.unit() && end < whole)
    fail("t_max",
         "the schedule would end at " + end.text() + ", before the training does at " + whole.text());
  return end;
}

}  // namespace tutti
