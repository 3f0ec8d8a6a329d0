#include "training/metrics/curves.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "training/metrics/classification.h"
#include "training/metrics/stat_scores.h"

namespace tutti {
namespace {

constexpr std::size_t kMostNamed = 10;                             // labels in a note
constexpr int kFinestBins = 16, kCoarsestBins = 8, kAllBins = 20;  // powers of 2

double rate(double part, double whole) { return whole == 0.0 ? 0.0 : part / whole; }

// Bits that are ordered as the numbers are.
uint32_t ordered_bits(float number) {
  const auto bits = std::bit_cast<uint32_t>(number + 0.0F);  // -0 is 0
  return bits >> 31 ? ~bits : bits | 1U << 31;
}

// Of the bins of scores of each label; one more is for scores that are no numbers.
int bits_of_bin(int64_t labels) {
  return std::clamp(kAllBins - static_cast<int>(std::bit_width(static_cast<uint64_t>(labels - 1))),
                    kCoarsestBins, kFinestBins);
}

std::size_t sums_of(const AreaOptions& options) {
  return options.thresholds == 0 ? 1
                                 : 2 * static_cast<std::size_t>(options.labels * (options.thresholds + 1));
}

// A score as the sums hold it.
struct Scored {
  std::size_t label;
  double score;
  bool truth;
};

}  // namespace

AreaUnderCurve::AreaUnderCurve(std::string name, const AreaOptions& options)
    : Metric(sums_of(options)), name_(std::move(name)), options_(options) {}

void AreaUnderCurve::count(const at::Tensor& scores, const at::Tensor& truth, const at::Tensor& counted) {
  const int64_t labels = options_.labels;
  if (by_rank()) {
    const at::Tensor wide = scores.to(at::kDouble);
    const at::Tensor label = at::arange(labels, wide.options()).mul(2).add(1);
    const at::Tensor code = truth.to(at::kDouble).add(label).mul(counted);
    return add_late(1, at::stack({code, wide}, -1).reshape(-1));
  }
  const int64_t bins = options_.thresholds + 1;
  const at::Tensor probability = scores.sigmoid();
  const at::Tensor edges = at::linspace(0.0, 1.0, bins - 1, probability.options());
  const at::Tensor bin = at::bucketize(probability, edges, /*out_int32=*/false, /*right=*/true)
                             .masked_fill_(probability.isnan(), 0);  // above no threshold
  const at::Tensor first = at::arange(labels, bin.options()).mul(bins);
  const at::Tensor place = bin + first + truth.logical_not().to(at::kLong).mul(labels * bins);
  add(0, class_counts(place, counted, 2 * labels * bins));
}

void AreaUnderCurve::take(std::size_t sum, std::span<const double> all) {
  if (!by_rank()) return Metric::take(sum, all);
  for (std::size_t i = 0; i < all.size(); i += 2) {
    if (all[i] == 0.0) continue;
    const auto code = static_cast<std::size_t>(all[i]) - 1;
    add_score(code / 2, code % 2 == 1, all[i + 1]);
  }
  if (!is_binned() && std::ssize(sums_) > 2 * kMostScores + 1) fold();
}

void AreaUnderCurve::add_score(std::size_t label, bool truth, double score) {
  if (!is_binned()) {
    sums_.insert(sums_.end(), {static_cast<double>(1 + 2 * label + (truth ? 1 : 0)), score});
    return;
  }
  const std::size_t label_size = bins(), labels = (sums_.size() - 1) / (2 * label_size);
  const auto number = static_cast<float>(score);
  const std::size_t bin =
      std::isnan(number) ? 0 : 1 + (ordered_bits(number) >> (32 - bits_of_bin(options_.labels)));
  sums_[1 + ((truth ? 0 : labels) + label) * label_size + bin] += 1.0;
}

// The first is for scores above no threshold.
std::size_t AreaUnderCurve::bins() const {
  return 1 + (by_rank() ? std::size_t{1} << bits_of_bin(options_.labels)
                        : static_cast<std::size_t>(options_.thresholds));
}

void AreaUnderCurve::fold() {
  const std::vector<double> scores = std::move(sums_);
  sums_.assign(1 + 2 * static_cast<std::size_t>(options_.labels) * bins(), 0.0);
  sums_[0] = 1.0;
  take(1, std::span(scores).subspan(1));
}

void AreaUnderCurve::reset() {
  Metric::reset();
  if (by_rank() && !is_fixed_) sums_.assign(1, 0.0);
}

void AreaUnderCurve::fix_size() {
  if (!is_binned()) fold();
  is_fixed_ = true;
}

void AreaUnderCurve::gather(const SumOverRanks& sum, int rank, int world) {
  if (!by_rank()) return;
  sums();  // with what a device has added
  at::Tensor counts = at::zeros({world}, at::kDouble);
  counts[rank] = is_binned() ? 2.0 * kMostScores : static_cast<double>(sums_.size() / 2);
  if (sum) sum(counts);
  const auto all = static_cast<std::size_t>(counts.sum().item<double>());
  if (all > kMostScores) {
    if (!is_binned()) fold();
    return;
  }
  const auto before = static_cast<std::size_t>(counts.narrow(0, 0, rank).sum().item<double>());
  std::vector<double> gathered(1 + 2 * all, 0.0);
  std::copy(sums_.begin() + 1, sums_.end(), gathered.begin() + 1 + static_cast<std::ptrdiff_t>(2 * before));
  sums_ = std::move(gathered);
}

std::string AreaUnderCurve::note() const {
  const std::string undefined = undefined_note();
  if (!by_rank() || !is_binned()) return undefined;
  return measured_name() + " is not exact: of more than " + std::to_string(kMostScores) +
         " scores those are equal that share one of " + std::to_string(bins() - 1) + " bins" +
         (undefined.empty() ? "" : "; ") + undefined;
}

namespace {

// "counts 0 for labels 1, 4 and 3 others"
std::string labels_text(const char* what, const std::vector<std::size_t>& labels) {
  std::string text = std::string(what) + (labels.size() == 1 ? " label" : " labels");
  for (std::size_t i = 0; i < std::min(labels.size(), kMostNamed); ++i)
    text += (i == 0 ? " " : ", ") + std::to_string(labels[i]);
  return labels.size() <= kMostNamed
             ? text
             : text + " and " + std::to_string(labels.size() - kMostNamed) + " others";
}

}  // namespace

// Without positives a label has no curve, and that of rates needs negatives too.
std::string AreaUnderCurve::undefined_note() const {
  const bool needs_both = options_.area == Area::kRoc;
  const std::vector<Curve> all = curves();
  std::vector<std::size_t> left_out, zeros;
  for (std::size_t label = 0; label < all.size(); ++label) {
    const Point& targets = all[label].all;
    if (targets.positive > 0.0 && (!needs_both || targets.negative > 0.0)) continue;
    (is_in_mean(all[label]) ? zeros : left_out).push_back(label);
  }
  if (left_out.empty() && zeros.empty()) return "";
  const std::string why = needs_both ? "the targets are all alike" : "no target is positive";
  if (all.size() == 1) return measured_name() + " is 0: " + why;
  std::string text;
  if (!left_out.empty()) text = labels_text(" leaves out", left_out);
  if (!zeros.empty()) text += (text.empty() ? "" : ", and") + labels_text(" counts 0 for", zeros);
  return measured_name() + text + ", of which " + why;
}

// torchmetrics' mean leaves out labels without positives if the curve goes through all scores.
bool AreaUnderCurve::leaves_out() const {
  return by_rank() && options_.area == Area::kPrecisionRecall && options_.average != Average::kNone;
}

bool AreaUnderCurve::is_in_mean(const Curve& curve) const {
  return options_.average == Average::kNone || weight_of(curve) > 0.0;
}

double AreaUnderCurve::weight_of(const Curve& curve) const {
  if (options_.average == Average::kWeighted) return curve.all.positive;
  return leaves_out() && curve.all.positive == 0.0 ? 0.0 : 1.0;
}

AreaUnderCurve::Curve AreaUnderCurve::curve(std::span<const double> positive,
                                            std::span<const double> negative) const {
  Curve made;
  for (std::size_t bin = positive.size(); bin-- > 0;) {
    made.all.positive += positive[bin];
    made.all.negative += negative[bin];
    if (bin > 0) made.points.push_back({positive[bin], negative[bin]});
  }
  return made;
}

std::vector<AreaUnderCurve::Curve> AreaUnderCurve::curves_of_bins() const {
  const std::span<const double> counts = std::span(sums_).subspan(by_rank() ? 1 : 0);
  const auto labels = static_cast<std::size_t>(options_.labels), size = bins();
  std::vector<double> sum(2 * size);
  std::vector<Curve> curves;
  for (std::size_t label = 0; label < labels; ++label) {
    const auto positive = counts.subspan(label * size, size);
    const auto negative = counts.subspan((labels + label) * size, size);
    if (options_.average != Average::kMicro) curves.push_back(curve(positive, negative));
    for (std::size_t i = 0; i < size; ++i) {
      sum[i] += positive[i];
      sum[size + i] += negative[i];
    }
  }
  if (options_.average == Average::kMicro)
    curves.push_back(curve(std::span(sum).first(size), std::span(sum).subspan(size)));
  return curves;
}

std::vector<AreaUnderCurve::Curve> AreaUnderCurve::curves_of_scores(bool together) const {
  std::vector<Scored> scores;
  for (std::size_t i = 1; i < sums_.size(); i += 2) {
    const auto code = static_cast<std::size_t>(sums_[i]) - 1;
    scores.push_back({together ? 0 : code / 2, sums_[i + 1], code % 2 == 1});
  }
  std::ranges::sort(scores, [](const Scored& a, const Scored& b) {
    const bool a_last = std::isnan(a.score), b_last = std::isnan(b.score);
    if (a.label != b.label || a_last || b_last) return std::tie(a.label, a_last) < std::tie(b.label, b_last);
    return a.score > b.score;
  });
  std::vector<Curve> curves(together ? 1 : static_cast<std::size_t>(options_.labels));
  const Scored* before = nullptr;
  for (const Scored& scored : scores) {
    Curve& curve = curves[scored.label];
    (scored.truth ? curve.all.positive : curve.all.negative) += 1.0;
    if (std::isnan(scored.score)) continue;  // above no threshold
    if (!before || before->label != scored.label || before->score != scored.score)
      curve.points.emplace_back();
    (scored.truth ? curve.points.back().positive : curve.points.back().negative) += 1.0;
    before = &scored;
  }
  return curves;
}

std::vector<AreaUnderCurve::Curve> AreaUnderCurve::curves() const {
  return is_binned() ? curves_of_bins() : curves_of_scores(options_.average == Average::kMicro);
}

// torchmetrics' curve of rates begins at the last of given thresholds, else at (0, 0).
double AreaUnderCurve::area_of(const Curve& curve) const {
  double hits = 0.0, alarms = 0.0, area = 0.0;
  bool begun = by_rank();
  for (const Point& at : curve.points) {
    if (options_.area == Area::kPrecisionRecall)
      area += rate(at.positive, curve.all.positive) *
              rate(hits + at.positive, hits + at.positive + alarms + at.negative);
    else if (begun)
      area +=
          rate(at.negative, curve.all.negative) * rate(2.0 * hits + at.positive, 2.0 * curve.all.positive);
    hits += at.positive;
    alarms += at.negative;
    begun = true;
  }
  return area;
}

double AreaUnderCurve::compute() const {
  double sum = 0.0, weights = 0.0;
  for (const Curve& curve : curves()) {
    sum += weight_of(curve) * area_of(curve);
    weights += weight_of(curve);
  }
  return rate(sum, weights);
}

std::vector<std::string> AreaUnderCurve::parts() const {
  return options_.average == Average::kNone ? numbered_parts(static_cast<std::size_t>(options_.labels))
                                            : Metric::parts();
}

std::vector<double> AreaUnderCurve::values() const {
  if (options_.average != Average::kNone) return Metric::values();
  std::vector<double> areas;
  for (const Curve& curve : curves()) areas.push_back(area_of(curve));
  return areas;
}

void BinaryArea::update(const at::Tensor& outputs, const at::Tensor& target) {
  count(binary_scores(name(), outputs, target).unsqueeze(-1), target.gt(0).unsqueeze(-1),
        target.ne(ignore_index_).unsqueeze(-1));
}

// The odds of a class against the others, in double precision: a probability near 1 would lose digits.
void MulticlassArea::update(const at::Tensor& outputs, const at::Tensor& target) {
  require_scores_of(name(), target, outputs);
  require_classes(name(), outputs, classes_);
  const at::Tensor likely = outputs.movedim(1, -1).to(at::kDouble).log_softmax(-1);
  const at::Tensor odds = likely - at::log1p(likely.exp().neg());
  const at::Tensor classes = at::arange(classes_, target.options());
  const at::Tensor truth = target.unsqueeze(-1).eq(classes);
  count(odds, truth, target.ne(ignore_index_).unsqueeze(-1).expand_as(truth));
}

void MultilabelArea::update(const at::Tensor& outputs, const at::Tensor& target) {
  const at::Tensor scores = label_scores(name(), outputs, target, labels_);
  count(scores.movedim(1, -1).contiguous(), target.gt(0).movedim(1, -1),
        target.ne(ignore_index_).movedim(1, -1));
}

}  // namespace tutti
