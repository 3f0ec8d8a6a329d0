#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "recipe/catalog.h"
#include "recipe/section.h"
#include "recipe/time/time.h"
#include "runtime/clock.h"
#include "training/schedules/schedule.h"

// [train], [precision] and [compat]. Free of libtorch.
namespace tutti {

template <>
struct OptionType<Nanoseconds> {
  static constexpr KeyType type = KeyType::kTime;
  static std::string text(Nanoseconds time) { return option_text(seconds(time)) + "sec"; }
  static Nanoseconds read(const Setting& key) { return std::chrono::seconds(Time::parse(key).count()); }
};

// The number of microbatches of a step on each rank.
struct AccumulationSettings {
  // (first step, number of microbatches); empty: automatic, as many as memory needs.
  std::vector<std::pair<int64_t, int>> steps = {{0, 1}};
  Setting key = {};                            // grad_accum, which says the numbers, or none
  int64_t microbatch_size = 0;                 // samples, instead of a number of microbatches; 0 = not given
  Time grow_interval = {0, TimeUnit::kBatch};  // automatic: when to try half the number; 0 = never

  bool automatic() const { return steps.empty(); }
};

// [train] and [compat]. Iterations are converted to epochs.
struct TrainSettings {
  Given<Time> max_duration;  // before scaling by scale_schedule_ratio
  Given<double> scale_schedule_ratio = 1.0;
  int64_t iteration_length = 0;  // epochs; 0: the whole training is one iteration
  Time eval_interval = {1, TimeUnit::kEpoch};
  Time stop_at = {0, TimeUnit::kBatch};  // ends this attempt early; 0 = never
  AccumulationSettings accumulation;
  Nanoseconds hang_timeout = std::chrono::seconds(60);
  Given<bool> deterministic_mode = false;
  bool cuda_graphs = false;
  Given<std::string> precision = "fp32";
  bool progress_bar = true;
  int64_t progress_interval = 0;  // steps; 0 = by time
  bool log_to_console = false;
  Time console_log_interval = {1, TimeUnit::kBatch};
  std::string console_stream = "stderr";
  bool log_traces = false;
  bool auto_log_hparams = false;
  bool composer = false;  // where Composer and tutti differ, do as Composer

  static Kind<TrainSettings> kind();  // of [train], with times as written
  // Throws UserError if max_duration is in iterations without a length, or 0 by the ratio.
  static TrainSettings read(const Setting& recipe);

  Time planned_duration() const { return max_duration.value * scale_schedule_ratio; }
  // An interval of the recipe, with iterations converted to epochs. If iterations have no length, the whole
  // training is one iteration, and an interval in iterations never fires before the end, as in Composer.
  Time interval(const Time& time) const;
  // The horizon of schedules for a training of length `duration`.
  Horizon horizon(const Time& duration, int64_t batches_per_epoch, double base_lr) const;
};
Catalog train_catalog();

// How losses are scaled under amp_fp16.
struct LossScaling {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;  // steps
};

// [precision]
struct PrecisionSettings : LossScaling {
  enum class Dtype { kFp32, kBf16 };

  Given<std::optional<Dtype>> param_dtype;
  std::optional<Dtype> reduce_dtype, buffer_dtype;

  static Kind<PrecisionSettings> kind();
};

// [reproducibility]
struct ReproducibilitySettings {
  enum class Mode { kFixed, kElastic };

  Given<Mode> mode = Mode::kFixed;
  Given<int> grains = 0;  // 0: not elastic

  bool is_elastic() const { return mode == Mode::kElastic; }

  static Kind<ReproducibilitySettings> kind();
  static ReproducibilitySettings read(const Setting& section);
};

// [compat]
struct CompatSettings {
  bool composer = false;

  static Kind<CompatSettings> kind();
};

}  // namespace tutti
