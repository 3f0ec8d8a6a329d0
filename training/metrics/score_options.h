#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "recipe/options.h"
#include "tensors/ignored_target.h"

// The metrics of binary, multiclass and multilabel predictions with their keys, after torchmetrics. Free of
// libtorch.
namespace tutti {

class Metric;
using MetricPtr = std::unique_ptr<Metric>;

enum class Score { kF1, kPrecision, kRecall };
enum class Area { kRoc, kPrecisionRecall };               // under a curve
enum class Average { kMacro, kMicro, kWeighted, kNone };  // over classes or labels

// "/0", "/1", ...: names of a metric's numbers, a name for each class or label.
std::vector<std::string> numbered_parts(std::size_t count);

template <Score kScore>
struct BinaryScoreOptions {
  double threshold = 0.5;  // of a probability
  int64_t ignore_index = kIgnoredTarget;

  static Kind<BinaryScoreOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

template <Score kScore>
struct MulticlassScoreOptions {
  int64_t num_classes = 0;
  Average average = Average::kMacro;
  int64_t ignore_index = kIgnoredTarget;

  static Kind<MulticlassScoreOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

template <Score kScore>
struct MultilabelScoreOptions {
  int64_t num_labels = 0;
  double threshold = 0.5;
  Average average = Average::kMacro;
  int64_t ignore_index = kIgnoredTarget;

  static Kind<MultilabelScoreOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

template <Area kArea>
struct BinaryAreaOptions {
  int64_t thresholds = 0;  // 0 = the curve through all scores
  int64_t ignore_index = kIgnoredTarget;

  static Kind<BinaryAreaOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

template <Area kArea>
struct MulticlassAreaOptions {
  int64_t num_classes = 0;
  int64_t thresholds = 0;
  Average average = Average::kMacro;
  int64_t ignore_index = kIgnoredTarget;

  static Kind<MulticlassAreaOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

template <Area kArea>
struct MultilabelAreaOptions {
  int64_t num_labels = 0;
  int64_t thresholds = 0;
  Average average = Average::kMacro;
  int64_t ignore_index = kIgnoredTarget;

  static Kind<MultilabelAreaOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

enum class Normalize { kNone, kTrue, kPred, kAll };

struct ConfusionMatrixOptions {
  int64_t num_classes = 0;
  Normalize normalize = Normalize::kNone;
  int64_t ignore_index = kIgnoredTarget;

  static Kind<ConfusionMatrixOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

struct RetrievalRecallOptions {
  int64_t top_k = 1;
  bool skips_empty = false;  // a sample without a label counts as 0 if not

  static Kind<RetrievalRecallOptions> kind();
  MetricPtr make(const Setting& keys, bool composer) const;
};

}  // namespace tutti
