#include "training/metrics/segmentation.h"

#include <ATen/ATen.h>

#include "training/metrics/classification.h"

namespace tutti {
namespace {

struct Areas {
  double both, predicted, targets;
};

// Layout: intersections of all classes, then predicted areas, then areas of targets.
Areas areas_of(std::span<const double> sums, size_t index) {
  const size_t classes = sums.size() / 3;
  return {sums[index], sums[classes + index], sums[2 * classes + index]};
}

// In that layout, of the pixels that count.
at::Tensor areas(const at::Tensor& predicted, const at::Tensor& targets, const at::Tensor& counted,
                 int64_t classes) {
  return at::cat({class_counts(targets, predicted.eq(targets).logical_and(counted), classes),
                  class_counts(predicted, counted, classes), class_counts(targets, counted, classes)});
}

double dice_of(const Areas& area) {
  if (area.targets == 0.0) return area.predicted == 0.0 ? 1.0 : 0.0;
  return 2.0 * area.both / (area.predicted + area.targets);
}

size_t area_count(int64_t classes) { return static_cast<size_t>(3 * classes); }

}  // namespace

MIoU::MIoU(int64_t num_classes, int64_t ignore_index)
    : Metric(area_count(num_classes)), num_classes_(num_classes), ignore_index_(ignore_index) {}

void MIoU::update(const at::Tensor& outputs, const at::Tensor& target) {
  require_scores_of(name(), target, outputs);
  require_classes(name(), outputs, num_classes_);
  add(0, areas(outputs.argmax(1), target, target.ne(ignore_index_), num_classes_));
}

double MIoU::compute() const {
  double sum = 0.0;
  double classes = 0.0;
  for (size_t i = 0; i < static_cast<size_t>(num_classes_); ++i) {
    const Areas area = areas_of(sums_, i);
    const double union_area = area.predicted + area.targets - area.both;
    if (union_area == 0.0) continue;
    sum += area.both / union_area;
    classes += 1.0;
  }
  return 100.0 * sum / classes;
}

Dice::Dice(int64_t num_classes, bool batch_means)
    : Metric(area_count(num_classes), batch_means), num_classes_(num_classes) {}

void Dice::update(const at::Tensor& outputs, const at::Tensor& target) {
  require_scores_of(name(), target, outputs);
  require_classes(name(), outputs, num_classes_);
  add(0, areas(outputs.argmax(1), target, at::ones_like(target, at::kBool), num_classes_));
}

double Dice::value_of(std::span<const double> areas) const {
  double sum = 0.0;
  for (size_t i = 1; i < areas.size() / 3; ++i) sum += dice_of(areas_of(areas, i));
  return sum / static_cast<double>(num_classes_ - 1);
}

}  // namespace tutti
