#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "recipe/options.h"
#include "tensors/ignored_target.h"
#include "training/metrics/score_options.h"

// The metrics with their keys. Free of libtorch.
namespace tutti {

class Metric;
using MetricPtr = std::unique_ptr<Metric>;

struct MulticlassAccuracyOptions {
  bool macro = false;       // mean over classes
  int64_t num_classes = 0;  // required for macro; 0 = any
  int64_t top_k = 1;
  int64_t ignore_index = kIgnoredTarget;  // targets that do not count

  static Kind<MulticlassAccuracyOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

struct CrossEntropyOptions {
  int64_t ignore_index = kIgnoredTarget;
  std::optional<bool> batch_means = {};  // default: as [compat] says

  static Kind<CrossEntropyOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

struct MIoUOptions {
  int64_t num_classes = 0;
  int64_t ignore_index = -1;

  static Kind<MIoUOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

struct DiceOptions {
  int64_t num_classes = 0;  // with the background
  std::optional<bool> batch_means = {};

  static Kind<DiceOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

struct LanguageCrossEntropyOptions {
  int64_t ignore_index = kIgnoredTarget;

  static Kind<LanguageCrossEntropyOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

struct LanguagePerplexityOptions {
  int64_t ignore_index = kIgnoredTarget;

  static Kind<LanguagePerplexityOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

struct MaskedAccuracyOptions {
  int64_t ignore_index = kIgnoredTarget;

  static Kind<MaskedAccuracyOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

struct MeanSquaredErrorOptions {
  bool squared = true;

  static Kind<MeanSquaredErrorOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

struct MeanAbsoluteErrorOptions {
  static Kind<MeanAbsoluteErrorOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

struct R2ScoreOptions {
  int64_t num_outputs = 1;
  bool by_variance = false;

  static Kind<R2ScoreOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

struct LossMetricOptions {
  Setting loss = {};
  std::optional<bool> batch_means = {};

  static Kind<LossMetricOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

enum class ChoiceLength { kNone, kCharacters, kBytes };

struct ChoiceAccuracyOptions {
  static Kind<ChoiceAccuracyOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

struct ChoiceAccuracyNormOptions {
  ChoiceLength length = ChoiceLength::kCharacters;

  static Kind<ChoiceAccuracyNormOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

struct ExactMatchOptions {
  bool ignore_case = false, ignore_punctuation = false;

  static Kind<ExactMatchOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

struct BleuOptions {
  static Kind<BleuOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

struct ChrfOptions {
  static Kind<ChrfOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

using MetricKinds =
    Kinds<MulticlassAccuracyOptions, CrossEntropyOptions, BinaryScoreOptions<Score::kF1>,
          BinaryScoreOptions<Score::kPrecision>, BinaryScoreOptions<Score::kRecall>,
          BinaryAreaOptions<Area::kRoc>, BinaryAreaOptions<Area::kPrecisionRecall>,
          MulticlassScoreOptions<Score::kF1>, MulticlassScoreOptions<Score::kPrecision>,
          MulticlassScoreOptions<Score::kRecall>, MultilabelScoreOptions<Score::kF1>,
          MultilabelScoreOptions<Score::kPrecision>, MultilabelScoreOptions<Score::kRecall>,
          MulticlassAreaOptions<Area::kRoc>, MulticlassAreaOptions<Area::kPrecisionRecall>,
          MultilabelAreaOptions<Area::kRoc>, MultilabelAreaOptions<Area::kPrecisionRecall>,
          ConfusionMatrixOptions, RetrievalRecallOptions, MIoUOptions, DiceOptions,
          LanguageCrossEntropyOptions, LanguagePerplexityOptions, MaskedAccuracyOptions,
          MeanSquaredErrorOptions, MeanAbsoluteErrorOptions, R2ScoreOptions, ChoiceAccuracyOptions,
          ChoiceAccuracyNormOptions, ExactMatchOptions, BleuOptions, ChrfOptions, LossMetricOptions>;

// Not a section of the recipe. Shown by `tutti list metrics`.
Catalog metric_catalog();

}  // namespace tutti
