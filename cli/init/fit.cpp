#include "cli/init/fit.h"

#include <algorithm>
#include <cmath>

namespace tutti {
namespace {

constexpr double kLongEpoch = 180;  // seconds
constexpr int64_t kSizes[] = {160, 128, 96, 64};
// Threads are not worth while for less: milliseconds, and a share of the time to compute on the batch.
constexpr double kShortLoad = 1, kSmallLoad = 0.05;

}  // namespace

bool is_long(double epoch_s) { return epoch_s > kLongEpoch; }

int64_t shorter_size(int64_t size, double epoch_s) {
  if (!is_long(epoch_s)) return 0;
  const auto is_short = [&](int64_t smaller) {
    const double ratio = static_cast<double>(smaller) / static_cast<double>(size);
    return smaller < size && !is_long(epoch_s * ratio * ratio);
  };
  const auto* largest = std::ranges::find_if(kSizes, is_short);
  if (largest != std::end(kSizes)) return *largest;
  const int64_t smallest = *std::prev(std::end(kSizes));
  return smallest < size ? smallest : 0;
}

int64_t threads_for(double load_ms, double batch_ms, int64_t cores) {
  if (load_ms < std::max(kShortLoad, kSmallLoad * batch_ms)) return 0;
  const double threads = std::ceil(load_ms / std::max(batch_ms, kShortLoad));
  return std::min(std::lround(threads), cores);
}

}  // namespace tutti
