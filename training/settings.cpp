#include "training/settings.h"

namespace tutti {
namespace {

AccumulationSettings accumulation_of(const Setting& train) {
  AccumulationSettings settings;
  const Setting& number = train.at("grad_accum");
  if (!number.is_none()) settings.steps.clear();
  if (number.is_integer()) settings.steps = {{0, static_cast<int>(number.integer())}};
  if (number.is_array())
    for (const Setting& pair : number.array())
      settings.steps.emplace_back(pair.array()[0].integer(), static_cast<int>(pair.array()[1].integer()));
  if (train.has("device_train_microbatch_size"))
    settings.microbatch_size = train.at("device_train_microbatch_size").integer();
  settings.grow_interval = Time::parse(train.at("grad_accum_grow_interval"));
  return settings;
}

void read_duration(const Setting& train, TrainSettings& settings) {
  const Setting& duration = train.at("max_duration");
  const Setting& ratio = train.at("scale_schedule_ratio");
  const Time whole = settings.interval(duration);
  const bool endless = whole.unit() == TimeUnit::kIteration;
  if (endless && whole.count() != 0) duration.fail("[train] iteration_length does not say how long one is");
  settings.max_duration = endless ? Time() : whole;
  settings.scale_schedule_ratio = ratio.number();
  if (settings.planned_duration().value() == 0 && whole.value() > 0)
    ratio.fail("expected a larger ratio: this leaves nothing of max_duration, " + whole.text());
}

int64_t count_of(const Setting& time) { return time.is_none() ? 0 : Time::parse(time).count(); }

// A run of 0ba trains no step; its schedules are those of a run of one. (0ep is the length of a run without
// end, too.)
Time length_of_schedule(const Time& duration) {
  const bool is_none = duration.value() == 0.0 && duration.unit() == TimeUnit::kBatch;
  return is_none ? Time(1, TimeUnit::kBatch) : duration;
}

}  // namespace

TrainSettings TrainSettings::read(const Setting& recipe) {
  const Setting& train = recipe.at("train");
  TrainSettings settings;
  settings.iteration_length = count_of(train.at("iteration_length"));
  read_duration(train, settings);
  settings.eval_interval = settings.interval(train.at("eval_interval"));
  settings.accumulation = accumulation_of(train);
  settings.hang_timeout = std::chrono::seconds(count_of(train.at("hang_timeout")));
  settings.deterministic_mode = train.at("deterministic_mode").boolean();
  settings.cuda_graphs = train.at("cuda_graphs").boolean();
  settings.progress_bar = train.at("progress_bar").boolean();
  settings.progress_interval = count_of(train.at("progress_interval"));
  settings.log_traces = train.at("log_traces").boolean();
  settings.auto_log_hparams = train.at("auto_log_hparams").boolean();
  settings.composer = recipe.at("compat").at("composer").boolean();
  return settings;
}

Time TrainSettings::interval(const Setting& setting) const {
  const Time time = Time::parse(setting);
  if (time.unit() != TimeUnit::kIteration || iteration_length == 0) return time;
  return {time.value() * static_cast<double>(iteration_length), TimeUnit::kEpoch};
}

Horizon TrainSettings::horizon(const Time& duration, int64_t batches_per_epoch, double base_lr) const {
  return {.max_duration = length_of_schedule(duration),
          .batches_per_epoch = batches_per_epoch,
          .scale_schedule_ratio = scale_schedule_ratio,
          .composer = composer,
          .base_lr = base_lr,
          .unscaled_duration = length_of_schedule(max_duration)};
}

}  // namespace tutti
