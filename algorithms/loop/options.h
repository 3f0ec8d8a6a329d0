#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/batch_key.h"
#include "recipe/options.h"
#include "recipe/setting.h"
#include "recipe/time/time.h"

// The kinds of [[algorithms]] that change the training loop, with Composer's names and defaults. Free of
// libtorch.
namespace tutti {

class Algorithm;
using AlgorithmPtr = std::shared_ptr<Algorithm>;

struct DistillationOptions {
  Setting teacher = {};  // a path, or a table of [model]: algorithms/loop/teacher_model.h
  double temperature = 2.0;
  double weight = 0.5;  // of the divergence; the model's own loss has the rest

  static Kind<DistillationOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct DPOOptions {
  // As DistillationOptions::teacher. With a path outside of [[algorithms]]: the start of the run, whose
  // weights are taken as saved, without averages.
  Setting reference = {};
  double beta = 0.1;

  static Kind<DPOOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct EMAOptions {
  std::optional<Time> half_life = {};    // in batches or epochs; either this or smoothing
  std::optional<double> smoothing = {};  // of one update; else 2^(-update_interval / half_life)
  Time ema_start{0.0, TimeUnit::kDuration};
  std::optional<Time> update_interval = {};  // default: one unit of half_life, or one batch

  static Kind<EMAOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

enum class ClippingType {
  kNorm,     // scales all gradients by min(1, threshold / (norm + 1e-6)); norm: L2, of all gradients together
  kValue,    // clamps each number to [-threshold, threshold]
  kAdaptive  // limits each unit's gradient norm to threshold x weight norm: Brock et al. 2021,
             // arXiv:2102.06171; a unit is a slice of dim 0, or a whole parameter of fewer than two dims
};

struct GradientClippingOptions {
  ClippingType clipping_type = ClippingType::kNorm;
  double clipping_threshold = 0.0;

  static Kind<GradientClippingOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct LabelSmoothingOptions {
  double smoothing = 0.1;
  BatchKey target_key = "target";

  static Kind<LabelSmoothingOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct LayerFreezingOptions {
  double freeze_start = 0.5;
  double freeze_level = 1.0;

  static Kind<LayerFreezingOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct SAMOptions {
  double rho = 0.05;       // length of the step uphill
  double epsilon = 1e-12;  // added to the norm of the gradients
  int64_t interval = 1;    // steps; the others are plain

  static Kind<SAMOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct SelectiveBackpropOptions {
  double start = 0.5;
  double end = 0.9;
  double keep = 0.5;
  double scale_factor = 1.0;
  int64_t interrupt = 2;
  BatchKey input_key = "input";
  BatchKey target_key = "target";

  static Kind<SelectiveBackpropOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

struct SequenceLengthOptions {
  bool truncate = true;                   // false: the tokens after the length become further samples
  bool preserve_end_of_sequence = false;  // when truncating, needs batch["attention_mask"]
};

struct SeqLengthWarmupOptions : SequenceLengthOptions {
  double duration = 0.3;
  int64_t min_seq_length = 8;
  int64_t max_seq_length = 1024;
  int64_t step_size = 8;

  static Kind<SeqLengthWarmupOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

enum class AnnealStrategy { kLinear, kCosine };

struct SWAOptions {
  Time swa_start{0.7, TimeUnit::kDuration};
  Time swa_end{0.97, TimeUnit::kDuration};  // in the unit of swa_start
  Time update_interval{1, TimeUnit::kEpoch};
  bool schedule_swa_lr = false;
  AnnealStrategy anneal_strategy = AnnealStrategy::kLinear;
  int64_t anneal_steps = 10;
  std::optional<double> swa_lr = {};     // default: the schedule's rate when averaging begins
  std::optional<bool> replace_ema = {};  // default: false, with a warning where there is an EMA

  static Kind<SWAOptions> kind();
  AlgorithmPtr make(const Setting& section) const;
};

using LoopKinds =
    Kinds<DistillationOptions, DPOOptions, EMAOptions, GradientClippingOptions, LabelSmoothingOptions,
          LayerFreezingOptions, SAMOptions, SelectiveBackpropOptions, SeqLengthWarmupOptions, SWAOptions>;

}  // namespace tutti
