#include "training/metrics/curves.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "training/metrics/classification.h"
#include "training/metrics/stat_scores.h"

namespace tutti {
namespace {

double sum_of(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

// The number at or above each threshold, and 0 behind them.
std::vector<double> at_or_above(const std::vector<double>& bins) {
  std::vector<double> found(bins.size());
  for (size_t k = bins.size() - 1; k-- > 0;) found[k] = found[k + 1] + bins[k + 1];
  return found;
}

double rate(double part, double whole) { return whole == 0.0 ? 0.0 : part / whole; }

void accumulate(std::vector<double>& sums, const std::vector<double>& numbers) {
  std::ranges::transform(sums, numbers, sums.begin(), std::plus<>());
}

}  // namespace

BinnedArea::BinnedArea(std::string name, Area area, Average average, int64_t labels, int64_t thresholds)
    : Metric(2 * static_cast<size_t>(labels * (thresholds + 1))),
      name_(std::move(name)),
      area_(area),
      average_(average),
      labels_(static_cast<size_t>(labels)),
      thresholds_(static_cast<size_t>(thresholds)) {}

void BinnedArea::count(const at::Tensor& probability, const at::Tensor& truth, const at::Tensor& counted) {
  const auto labels = static_cast<int64_t>(labels_), bins = static_cast<int64_t>(thresholds_) + 1;
  const at::Tensor edges = at::linspace(0.0, 1.0, bins - 1, probability.options());
  const at::Tensor bin = at::bucketize(probability, edges, /*out_int32=*/false, /*right=*/true)
                             .masked_fill_(probability.isnan(), 0);  // above no threshold
  const at::Tensor first = at::arange(labels, bin.options()).mul(bins);
  const at::Tensor place = bin + first + truth.logical_not().to(at::kLong).mul(labels * bins);
  add(0, class_counts(place, counted, 2 * labels * bins));
}

std::vector<double> BinnedArea::bins(size_t label, bool positive) const {
  const size_t size = thresholds_ + 1;
  const auto first = sums_.begin() + static_cast<std::ptrdiff_t>((positive ? label : labels_ + label) * size);
  return {first, first + static_cast<std::ptrdiff_t>(size)};
}

double BinnedArea::area_of(const std::vector<double>& positive, const std::vector<double>& negative) const {
  const std::vector<double> hits = at_or_above(positive), alarms = at_or_above(negative);
  const double positives = sum_of(positive), negatives = sum_of(negative);
  double area = 0.0;
  for (size_t k = 0; k < thresholds_; ++k) {
    const double recall = rate(hits[k], positives), next = rate(hits[k + 1], positives);
    if (area_ == Area::kPrecisionRecall)
      area += (recall - next) * rate(hits[k], hits[k] + alarms[k]);
    else if (k + 1 < thresholds_)
      area += (rate(alarms[k], negatives) - rate(alarms[k + 1], negatives)) * (recall + next) / 2.0;
  }
  return area;
}

double BinnedArea::compute() const {
  std::vector<double> positive(thresholds_ + 1), negative(thresholds_ + 1);
  double sum = 0.0, weights = 0.0;
  for (size_t label = 0; label < labels_; ++label) {
    const std::vector<double> there = bins(label, true), elsewhere = bins(label, false);
    accumulate(positive, there);
    accumulate(negative, elsewhere);
    const double weight = average_ == Average::kWeighted ? sum_of(there) : 1.0;
    sum += weight * area_of(there, elsewhere);
    weights += weight;
  }
  return average_ == Average::kMicro ? area_of(positive, negative) : rate(sum, weights);
}

std::vector<std::string> BinnedArea::parts() const {
  return average_ == Average::kNone ? numbered_parts(labels_) : Metric::parts();
}

std::vector<double> BinnedArea::values() const {
  if (average_ != Average::kNone) return Metric::values();
  std::vector<double> areas;
  for (size_t label = 0; label < labels_; ++label)
    areas.push_back(area_of(bins(label, true), bins(label, false)));
  return areas;
}

void BinaryArea::update(const at::Tensor& outputs, const at::Tensor& target) {
  count(binary_probability(name(), outputs, target).unsqueeze(-1), target.gt(0).unsqueeze(-1),
        target.ne(ignore_index_));
}

void MultilabelArea::update(const at::Tensor& outputs, const at::Tensor& target) {
  const at::Tensor probability = label_probabilities(name(), outputs, target, options_.num_labels);
  count(probability.movedim(1, -1).contiguous(), target.gt(0).movedim(1, -1),
        target.ne(options_.ignore_index).movedim(1, -1));
}

}  // namespace tutti
