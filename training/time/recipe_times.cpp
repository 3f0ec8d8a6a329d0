#include "training/time/recipe_times.h"

namespace tutti {

int64_t iteration_length(const Setting& recipe) {
  const Setting& length = recipe.at("train").at("iteration_length");
  return length.is_none() ? 0 : Time::parse(length).count();
}

Time recipe_time(const Setting& setting, const Setting& recipe) {
  const Time time = Time::parse(setting);
  if (time.unit() != TimeUnit::kIteration) return time;
  const int64_t epochs = iteration_length(recipe);
  if (epochs == 0 && time.count() != 0) setting.fail("[train] iteration_length does not say how long one is");
  return {time.value() * static_cast<double>(epochs), TimeUnit::kEpoch};
}

Time recipe_interval(const Setting& setting, const Setting& recipe) {
  const Time time = Time::parse(setting);
  const bool endless = time.unit() == TimeUnit::kIteration && iteration_length(recipe) == 0;
  return endless ? time : recipe_time(setting, recipe);
}

Time planned_duration(const Setting& recipe) {
  const Setting& ratio = recipe.at("train").at("scale_schedule_ratio");
  const Time whole = recipe_time(recipe.at("train").at("max_duration"), recipe);
  const Time scaled = whole * ratio.number();
  if (scaled.value() == 0 && whole.value() > 0)
    ratio.fail("it leaves nothing of max_duration, " + whole.text());
  return scaled;
}

}  // namespace tutti
