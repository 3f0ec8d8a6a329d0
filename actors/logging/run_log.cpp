#include "actors/logging/run_log.h"

#include <algorithm>
#include <utility>

#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
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

}  // namespace

RunLog::RunLog(const State& state, const RankActors& actors, Log& log, Recorder& recorder)
    : state_(state),
      logger_({actors.has_reporter, !actors.log_writers.empty()}, state.timestamp),
      trainer_(logger_, state),
      outlets_(actors, log),
      reports_(actors, log, recorder) {}

void RunLog::start(Context& context, const std::string& checkpoint, bool own) {
  const Timestamp& time = state_.timestamp;
  logger_.begin_run(time.batch + 1);
  reports_.send(context, ReportFrom{time.batch, checkpoint, own});
  outlets_.start(context, {state_.run_name, state_.run_dir, state_.rank, state_.world, state_.max_duration,
                           state_.dataloader_len, time, time.batch, own});
}

void RunLog::step_done(Context& context, const Verdict& verdict, double lr, Nanoseconds took) {
  if (!reports_.any()) return;
  StepDone done = step_report(state_, verdict, lr, took);
  done.metrics = trainer_.train_metrics();
  reports_.send(context, std::move(done));
}

void RunLog::evaluated(Context& context, const LoggedMetrics& metrics) {
  trainer_.evaluated(metrics);
  reports_.send(context, EvalDone{state_.timestamp.batch, state_.timestamp.epoch, metrics});
}

void RunLog::text_sample(Context& context, std::string text) {
  reports_.send(context, TextSample{std::move(text)});
}

void RunLog::send_metrics(Context& context) {
  LoggedMetrics metrics = logger_.take();
  if (metrics.empty()) return;
  reports_.send(context, MetricsLogged{state_.timestamp.batch, state_.timestamp.epoch, std::move(metrics)});
}

void RunLog::end_step(Context& context) {
  send_metrics(context);
  logger_.end_step();
  outlets_.send(context, logger_.take_entries());
}

void RunLog::end(Context& context) {
  outlets_.end();
  reports_.end(context);
}

}  // namespace tutti
