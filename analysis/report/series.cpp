#include "analysis/report/series.h"

#include <algorithm>
#include <cmath>

namespace tutti {
namespace {

constexpr std::size_t kMostNotFinite = 200;

// Collects values of one bucket after the other.
class Buckets {
 public:
  explicit Buckets(std::vector<Bucket>& out) : out_(out) {}

  void add(int64_t bucket, int64_t step, double value) {
    if (bucket != open_) {
      close();
      open_ = bucket;
      out_.push_back({step, step, 0, value, value});
    }
    Bucket& one = out_.back();
    one.last = step;
    one.low = std::min(one.low, value);
    one.high = std::max(one.high, value);
    one.mean += (value - one.mean) / static_cast<double>(++count_);
  }
  void close() { count_ = 0; }

 private:
  std::vector<Bucket>& out_;
  int64_t open_ = -1, count_ = 0;
};

}  // namespace

Series thin(const MetricsColumn& column, int64_t most) {
  Series series;
  const auto count = static_cast<int64_t>(column.steps.size());
  if (count == 0) return series;
  const int64_t first = column.steps.front();
  const double width = static_cast<double>(column.steps.back() - first + 1) / static_cast<double>(most);
  Buckets buckets(series.buckets);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t step = column.steps[static_cast<std::size_t>(i)];
    const double value = column.values[static_cast<std::size_t>(i)];
    if (std::isfinite(value)) {
      const auto place = static_cast<int64_t>(static_cast<double>(step - first) / width);
      buckets.add(count <= most ? i : place, step, value);
    } else if (series.not_finite_count++; series.not_finite.size() < kMostNotFinite) {
      series.not_finite.emplace_back(step, value);
    }
  }
  return series;
}

}  // namespace tutti
