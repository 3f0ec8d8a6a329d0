#include "data/balance/class_counts.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "data/balance/drawn_samples.h"
#include "data/data_settings.h"
#include "data/split/sample_targets.h"
#include "data/transforms/ignore_index.h"

namespace tutti {
namespace {

SampleTargets stored_targets(const Dataset& data, bool reads = true) {
  const auto* drawn = dynamic_cast<const DrawnSamples*>(&data);
  return sample_targets(drawn ? *drawn->data() : data, reads);
}

}  // namespace

TrainedClasses trained_classes(const Dataset& data, const Setting& train, int64_t ignore_index, bool reads) {
  SampleTargets stored = stored_targets(data, reads);
  std::vector<int64_t> classes = single_classes(stored.targets);
  const int64_t first = DataSettings::read(train).first_class;
  for (int64_t& number : classes) {
    const bool is_ignored = number == kIgnoredTarget || number == ignore_index;
    number = is_ignored || number < first ? -1 : number - first;
  }
  return {std::move(classes), std::move(stored.note)};
}

std::vector<int64_t> class_counts(const std::vector<int64_t>& classes, int64_t number) {
  if (classes.empty()) return {};
  const int64_t largest = std::ranges::max(classes);
  std::vector<int64_t> counts(static_cast<std::size_t>(std::max(number, largest + 1)));
  for (const int64_t one_class : classes)
    if (one_class >= 0) ++counts[static_cast<std::size_t>(one_class)];
  return counts;
}

std::vector<double> balanced_weights(const std::vector<int64_t>& counts) {
  double samples = 0, classes = 0;
  for (const int64_t count : counts) {
    samples += static_cast<double>(count);
    classes += count > 0;
  }
  std::vector<double> weights;
  for (const int64_t count : counts)
    weights.push_back(count > 0 ? samples / (classes * static_cast<double>(count)) : 1);
  return weights;
}

std::vector<double> balanced_pos_weights(const Dataset& data) {
  const at::Tensor targets = stored_targets(data).targets;
  if (!targets.defined() || targets.dim() > 2) return {};
  const at::Tensor labels = targets.dim() == 1 ? targets.unsqueeze(1) : targets;
  const at::Tensor ones = labels.eq(1), zeros = labels.eq(0);
  if (!ones.logical_or(zeros).all().item<bool>()) return {};
  const at::Tensor positives = ones.sum(0).to(at::kDouble), negatives = zeros.sum(0).to(at::kDouble);
  const at::Tensor weights = at::where(positives > 0, negatives / positives, at::ones_like(positives));
  const double* first = weights.const_data_ptr<double>();
  return {first, first + weights.numel()};
}

}  // namespace tutti
