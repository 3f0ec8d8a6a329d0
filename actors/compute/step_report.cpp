#include "actors/compute/step_report.h"

#include <algorithm>

#include "tensors/meter.h"

namespace tutti {
namespace {

// Of max_duration; within an epoch it moves with the batches.
double progress(const State& state) {
  const double whole = elapsed(state.timestamp, state.max_duration);
  if (state.max_duration.unit() != TimeUnit::kEpoch) return whole;
  return whole + static_cast<double>(state.timestamp.batch_in_epoch) /
                     (static_cast<double>(state.dataloader_len) * state.max_duration.value());
}

}  // namespace

StepReport step_report(const State& state, const Verdict& verdict, double lr, Nanoseconds took) {
  StepReport report;
  report.loss = verdict.loss_sum / verdict.loss_weight;
  report.lr = lr;
  report.samples = verdict.samples;
  report.step_ms = milliseconds(took);
  if (report.step_ms > 0)
    report.samples_per_s = 1e3 * verdict.samples / report.step_ms;  // made-up time may stand still
  report.grad_accum = state.grad_accum;
  report.device_train_microbatch_size = state.device_train_microbatch_size;
  for (const double bytes : verdict.memory_peak)
    report.memory_peak_mb = std::max(report.memory_peak_mb, bytes / kBytesPerMb);
  report.progress = progress(state);
  return report;
}

}  // namespace tutti
