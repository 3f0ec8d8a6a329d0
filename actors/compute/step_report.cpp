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

StepDone step_report(const State& state, const Verdict& verdict, double lr, Nanoseconds took) {
  StepDone done;
  done.step = state.timestamp.batch;
  done.epoch = state.timestamp.epoch;
  done.loss = static_cast<float>(verdict.loss_sum / verdict.loss_weight);
  done.lr = lr;
  done.samples = verdict.samples;
  done.step_ms = milliseconds(took);
  if (done.step_ms > 0)
    done.samples_per_s = 1e3 * verdict.samples / done.step_ms;  // made-up time may stand still
  done.grad_accum = state.grad_accum;
  for (const double bytes : verdict.memory_peak)
    done.memory_peak_mb = std::max(done.memory_peak_mb, bytes / kBytesPerMb);
  done.progress = progress(state);
  return done;
}

}  // namespace tutti
