#include "training/loggers/data_wait.h"

#include <algorithm>
#include <cmath>

#include "runtime/text.h"

namespace tutti {
namespace {

constexpr double kFelt = 0.1;       // part of the time that waiting for data may take unmentioned
constexpr double kWorthIt = 0.015;  // part of the time that advice must save

long percent(double part) { return std::lround(100 * part); }

}  // namespace

void DataWait::add(const StepReport& step) {
  step_ms_ += step.step_ms;
  wait_ms_ += step.data_wait_ms;
  read_ms_ += step.data_read_ms;
  disk_ms_ += step.data_disk_ms;
}

double DataWait::wait(double read_ms, int threads) const {
  const double longest = std::min(wait_ms_, std::max(0.0, read_ms / threads - (step_ms_ - wait_ms_)));
  return longest / step_ms_;
}

std::string DataWait::text(int threads, int cores) const {
  if (wait_ms_ <= kFelt * step_ms_) return "";
  int enough = std::max(threads, 1);
  while (enough < cores && wait(read_ms_, enough) > 0) ++enough;
  const double now = wait(read_ms_, std::max(threads, 1));
  const double by_workers = now - wait(read_ms_, enough);
  const double by_disk = now - wait(read_ms_ - disk_ms_, std::max(threads, 1));
  std::string advice;
  if (by_workers > kWorthIt)
    advice = formatted("num_workers = %d would save %ld%%", enough, percent(by_workers));
  if (by_disk > kWorthIt)
    advice += formatted(advice.empty() ? "a faster disk would save %ld%%" : ", a faster disk %ld%%",
                        percent(by_disk));
  return formatted("%ld%% waiting for data", percent(wait_ms_ / step_ms_)) +
         (advice.empty() ? "" : " (" + advice + ")");
}

}  // namespace tutti
