#include "training/settings.h"

#include <bit>

namespace tutti {
namespace {

// A time of which the number counts; 0 when absent.
Bound<TrainSettings> counted(const char* name, int64_t TrainSettings::*member, const char* doc) {
  return {Key{name, KeyType::kTime, "none", doc}, [member](TrainSettings& settings, const Setting& key) {
            settings.*member = Time::parse(key).count();
          }};
}

void read_microbatches(TrainSettings& settings, const Setting& number) {
  settings.accumulation.key = number;
  auto& steps = settings.accumulation.steps;
  steps.clear();
  if (number.is_integer()) steps = {{0, static_cast<int>(number.integer())}};
  if (number.is_array())
    for (const Setting& pair : number.array())
      steps.emplace_back(pair.array()[0].integer(), static_cast<int>(pair.array()[1].integer()));
}

std::vector<Bound<TrainSettings>> accumulation_options() {
  using enum KeyType;
  Key grad_accum{"grad_accum", kIntegerOrSteps, "none",
                 "microbatches per step on each rank, 1 when absent; auto: as few as memory allows"};
  Key size{"device_train_microbatch_size", kInteger, "none",
           "samples per microbatch on each rank, instead of grad_accum; auto: grad_accum = \"auto\""};
  Key interval{"grad_accum_grow_interval", kTime, "0ba",
               "with auto: time without running out of memory before half as many are tried; 0ba: never"};
  return {{std::move(grad_accum).at_least(1).at_most(1e6).or_word("auto"), read_microbatches},
          {std::move(size).at_least(1).at_most(1e9).or_word("auto"),
           [](TrainSettings& settings, const Setting& key) {
             settings.accumulation.microbatch_size = key.integer();
           }},
          {std::move(interval).in_units({"ep", "ba", "sp", "tok", "sec"}),
           [](TrainSettings& settings, const Setting& key) {
             settings.accumulation.grow_interval = Time::parse(key);
           }}};
}

std::vector<Bound<TrainSettings>> duration_options() {
  using Settings = TrainSettings;
  return {option("max_duration", &Settings::max_duration, "how long to train")
              .required()
              .in_units({"iter", "ep", "ba", "sp", "tok", "sec"}),
          counted("iteration_length", &Settings::iteration_length,
                  "epochs per iteration (iter); when absent, one iteration is the whole training")
              .in_units({"ep"})
              .at_least(1),
          option("eval_interval", &Settings::eval_interval,
                 "how often to evaluate on [data.eval]; it also happens at the end"),
          option("stop_at", &Settings::stop_at,
                 "ends the run early, with an evaluation and a checkpoint, while schedules stay those of "
                 "max_duration; `--resume auto` with a later time, or 0ba, trains on. 0.25dur: a quarter; "
                 "0ba: never")
              .in_units({"ep", "ba", "sp", "tok", "sec", "dur"})};
}

std::vector<Bound<TrainSettings>> loop_options() {
  using Settings = TrainSettings;
  return {
      option("scale_schedule_ratio", &Settings::scale_schedule_ratio,
             "scales max_duration and all times of the schedule; 0.5: half as long")
          .more_than(0)
          .at_most(1e6),
      counted("progress_interval", &Settings::progress_interval,
              "how often progress is printed without a terminal; every 2 seconds when absent")
          .in_units({"ba"})
          .at_least(1),
      option("deterministic_mode", &Settings::deterministic_mode,
             "fail if a libtorch kernel is not deterministic"),
      option(
          "cuda_graphs", &Settings::cuda_graphs,
          "launch forward and backward of a microbatch with one call: for small models, on one rank with a "
          "GPU, where no listener acts between"),
      option("progress_bar", &Settings::progress_bar, "show progress on standard output"),
      option("log_to_console", &Settings::log_to_console,
             "print metrics, like [[loggers]] kind = \"console\""),
      option("console_log_interval", &Settings::console_log_interval, "how often log_to_console prints")
          .more_than(0),
      option("console_stream", &Settings::console_stream, "where log_to_console prints")
          .one_of({"stdout", "stderr"}),
      option("log_traces", &Settings::log_traces, "log which algorithms ran at which event"),
      option("auto_log_hparams", &Settings::auto_log_hparams, "log the recipe's values as hyperparameters"),
      option("precision", &Settings::precision,
             "number format; amp_fp16 and amp_bf16 use 16 bits where possible, by autocast")
          .one_of({"fp32", "amp_fp16", "amp_bf16", "amp_fp8"})
          .also_written({{"amp", "amp_fp16"}}),
      option("hang_timeout", &Settings::hang_timeout,
             "a rank that is silent for this long is considered lost, and the run ends")
          .also_named({"dist_timeout"})
          .in_units({"sec"})
          .at_least(1)
          .at_most(1e6)};
}

void plan_duration(TrainSettings& settings) {
  const Time whole = settings.interval(settings.max_duration);
  const bool endless = whole.unit() == TimeUnit::kIteration;
  if (endless && whole.count() != 0)
    settings.max_duration.fail("[train] iteration_length does not say how long one is");
  settings.max_duration.value = endless ? Time() : whole;
  if (settings.planned_duration().value() == 0 && whole.value() > 0)
    settings.scale_schedule_ratio.fail("expected a larger ratio: this leaves nothing of max_duration, " +
                                       whole.text());
}

// A run of 0ba trains no step; its schedules are those of a run of one. (0ep is the length of a run without
// end, too.)
Time length_of_schedule(const Time& duration) {
  const bool is_none = duration.value() == 0.0 && duration.unit() == TimeUnit::kBatch;
  return is_none ? Time(1, TimeUnit::kBatch) : duration;
}

}  // namespace

Kind<TrainSettings> TrainSettings::kind() {
  return {"train", "The training loop.",
          with_keys(with_keys(duration_options(), accumulation_options()), loop_options())};
}

TrainSettings TrainSettings::read(const Setting& recipe) {
  TrainSettings settings = kind().read(recipe.at("train"));
  settings.composer = CompatSettings::kind().read(recipe.at("compat")).composer;
  plan_duration(settings);
  settings.eval_interval = settings.interval(settings.eval_interval);
  return settings;
}

Time TrainSettings::interval(const Time& time) const {
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

Catalog train_catalog() {
  Catalog catalog = section_catalog<TrainSettings>();
  catalog.alternatives = {{.keys = {"grad_accum", "device_train_microbatch_size"}}};
  return catalog;
}

Kind<PrecisionSettings> PrecisionSettings::kind() {
  using Settings = PrecisionSettings;
  const auto dtype = [](const char* name, auto member, const char* doc) {
    return option(name, member, doc, {{"fp32", Dtype::kFp32}, {"bf16", Dtype::kBf16}}).may_be_absent();
  };
  return {
      "precision",
      "Number formats other than those of [train] precision, and loss scaling of amp_fp16.",
      {dtype("param_dtype", &Settings::param_dtype, "of parameters and optimizer state; fp32 when absent"),
       dtype("reduce_dtype", &Settings::reduce_dtype,
             "of the sum of gradients over ranks; that of parameters when absent"),
       dtype("buffer_dtype", &Settings::buffer_dtype,
             "of buffers such as running statistics; fp32 when absent"),
       option<Settings>("init_scale", &Settings::init_scale, "initial scale of losses")
           .more_than(0)
           .at_most(1e30),
       option<Settings>("growth_factor", &Settings::growth_factor,
                        "growth of the scale after growth_interval steps")
           .at_least(1)
           .at_most(1e6),
       option<Settings>("backoff_factor", &Settings::backoff_factor,
                        "reduction of the scale if a gradient overflows; that step is skipped")
           .more_than(0)
           .at_most(1),
       option<Settings>("growth_interval", &Settings::growth_interval,
                        "steps without overflow before the scale grows")
           .at_least(1)
           .at_most(1e9)}};
}

Kind<ReproducibilitySettings> ReproducibilitySettings::kind() {
  using Settings = ReproducibilitySettings;
  return {
      "reproducibility",
      "On what the bits of a run depend.",
      {option("mode", &Settings::mode,
              "fixed: the same bits in each run on as many ranks; elastic: on any number of ranks, under "
              "every strategy, and when resumed on another number",
              {{"fixed", Mode::kFixed}, {"elastic", Mode::kElastic}}),
       option("grains", &Settings::grains,
              "with elastic: the parts of a global batch that each go through the model alone; a power of "
              "two, and the most ranks that compute. Other grains give other bits")
           .may_be_absent()
           .at_least(1)
           .at_most(4096)}};
}

ReproducibilitySettings ReproducibilitySettings::read(const Setting& section) {
  ReproducibilitySettings settings = kind().read(section);
  if (!settings.is_elastic()) {
    if (!settings.grains.is_absent()) settings.grains.fail("grains belong to mode = \"elastic\"");
    return settings;
  }
  if (settings.grains.is_absent())
    settings.mode.fail("reproducibility.grains, the parts of a global batch, is missing");
  if (!std::has_single_bit(static_cast<unsigned>(settings.grains.value)))
    settings.grains.fail("expected a power of two: 1, 2, 4, 8, ...");
  return settings;
}

Kind<CompatSettings> CompatSettings::kind() {
  return {"compat",
          "Composer's behaviour where tutti's differs; see docs/compat.md.",
          {option("composer", &CompatSettings::composer,
                  "learning rates lag by one batch, metrics are means over batches")}};
}

}  // namespace tutti
