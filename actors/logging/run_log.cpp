#include "actors/logging/run_log.h"

#include <algorithm>
#include <utility>

#include "actors/messages/rank_actors.h"
#include "tensors/memory/meter.h"

namespace tutti {
namespace {

// The part of max_duration that has passed, 0 to 1.
double progress(const State& state) {
  const double whole = elapsed(state.timestamp, state.max_duration);
  if (state.max_duration.unit() != TimeUnit::kEpoch) return whole;
  return whole + static_cast<double>(state.timestamp.batch_in_epoch) /
                     (static_cast<double>(state.dataloader_len) * state.max_duration.value());
}

// `state`: after the step.
StepReport step_report(const State& state, const Verdict& verdict, double lr, const RunLog::StepTimes& took) {
  StepReport report;
  report.loss = verdict.loss_sum / verdict.loss_weight;
  report.lr = lr;
  report.samples = verdict.samples;
  report.step_ms = milliseconds(took.all);
  report.data_wait_ms = milliseconds(took.data_wait);
  report.data_read_ms = milliseconds(took.read.all);
  report.data_disk_ms = milliseconds(took.read.blocked());
  if (report.step_ms > 0)
    report.samples_per_s = 1e3 * verdict.samples / report.step_ms;  // simulated time may stand still
  report.grad_accum = state.grad_accum;
  report.device_train_microbatch_size = state.device_train_microbatch_size;
  for (const double bytes : verdict.memory_peak)
    report.memory_peak_mb = std::max(report.memory_peak_mb, bytes / kBytesPerMb);
  report.max_duration = state.max_duration;
  report.progress = progress(state);
  return report;
}

int64_t parameter_count(const Trainee& trainee) {
  int64_t numbers = 0;
  for (const auto& named : trainee.parameters) numbers += named.parameter->tensor.numel();
  return numbers;
}

StepLog::Readers readers_of(const std::vector<LogActor>& logs) {
  return {!logs.empty(), !std::ranges::all_of(logs, &LogActor::numbers_only)};
}

}  // namespace

RunLog::RunLog(const State& state, const RankActors& actors, Log& log)
    : state_(state), logger_(readers_of(actors.logs), state.timestamp), trainer_(logger_, state) {
  for (const LogActor& log_actor : actors.logs) queues_.emplace_back(log_actor, log);
}

void RunLog::start(Context& context, const Resumed& from) {
  const Timestamp& time = state_.timestamp;
  logger_.begin_run(time.batch + 1, from.own && time.batch > 0);
  const int64_t parameters = parameter_count(state_);
  for (LogQueue& queue : queues_)
    queue.start(context, {state_.run_name, state_.run_dir, state_.topology.rank, state_.topology.world,
                          state_.max_duration, state_.dataloader_len, time, time.batch, from.own, from.folder,
                          parameters, from.changes});
}

void RunLog::step_done(const Timestamp& before, const Verdict& verdict, double lr, const StepTimes& took) {
  if (!logger_.logs_steps()) return;
  StepReport report = step_report(state_, verdict, lr, took);
  report.metrics = trainer_.train_metrics();
  logger_.log_step(std::move(report), before);
}

void RunLog::text_sample(Context& context, const std::string& text) {
  logger_.log_closing_text(text);
  send(context);
}

void RunLog::end_step(Context& context) {
  logger_.end_step();
  send(context);
}

void RunLog::send(Context& context) {
  const auto entries = std::make_shared<const std::vector<LogEntry>>(logger_.take_entries());
  if (entries->empty()) return;
  for (LogQueue& queue : queues_) queue.send(context, entries);
}

void RunLog::end(Context& context) {
  for (LogQueue& queue : queues_) queue.end(context);
}

}  // namespace tutti
