#include "training/callbacks/monitors/runtime_estimator.h"

#include "io/json/json_line.h"
#include "recipe/time/time_text.h"
#include "runtime/error.h"
#include "training/callbacks/options.h"
#include "training/state.h"

namespace tutti {
namespace {

// The passed fraction of max_duration, also within an epoch.
double fraction_done(const State& state) {
  const Timestamp& now = state.timestamp;
  if (state.max_duration.unit() != TimeUnit::kEpoch) return state.elapsed_duration().value();
  auto batches_of_epoch = static_cast<double>(state.dataloader_len);
  if (now.epoch >= 1)
    batches_of_epoch = static_cast<double>(now.batch - now.batch_in_epoch) / static_cast<double>(now.epoch);
  return static_cast<double>(now.batch) / (state.max_duration.value() * batches_of_epoch);
}

constexpr const char* kEvaluatorPrefix = "eval/";

}  // namespace

RuntimeEstimator::RuntimeEstimator(int64_t skip_batches, const std::string& time_unit)
    : to_skip_(static_cast<double>(skip_batches)), time_unit_(time_unit), divider_(seconds_in(time_unit)) {}

void RuntimeEstimator::init(State&, Logger& logger) {
  logger.log_hyperparameters({{"time/remaining_estimate_unit", time_unit_}});
}

void RuntimeEstimator::fit_start(State& state, Logger&) {
  if (to_skip_ == 0 && !start_) start(state);
}

void RuntimeEstimator::start(const State& state) {
  start_ = {state.timestamp.total_wct, fraction_done(state)};
}

void RuntimeEstimator::batch_end(State& state, Logger& logger) {
  if (to_skip_ > 0) {
    if (--to_skip_ == 0) start(state);
    return;
  }
  const double done = fraction_done(state);
  if (done <= start_->part) return;
  const double rate = (state.timestamp.total_wct - start_->seconds) / (done - start_->part);
  const double remaining = rate * (1.0 - done) + remaining_evaluation_s();
  logger.log_metrics({{"time/remaining_estimate", remaining / divider_}});
}

// Assumes that evaluations stay as frequent as so far.
double RuntimeEstimator::remaining_evaluation_s() const {
  double remaining = 0;
  for (const auto& [label, stats] : evaluations_) {
    const double mean = stats.count > 1 ? stats.seconds / (stats.count - 1) : stats.first_seconds;
    if (stats.part > 0) remaining += mean * ((1.0 - start_->part) * stats.count / stats.part - stats.count);
  }
  return remaining;
}

void RuntimeEstimator::eval_end(State& state, Logger&) {
  if (!start_ || state.evaluation_cut) return;
  Evaluations& stats = evaluations_[state.dataloader_label];
  const double seconds = state.eval_timestamp.total_wct;
  (stats.count++ == 0 ? stats.first_seconds : stats.seconds) += seconds;
  stats.part = fraction_done(state) - start_->part;
}

std::string RuntimeEstimator::state() const {
  JsonFields fields{{"to_skip", to_skip_}};
  if (start_) fields.emplace_back("start", std::vector{start_->seconds, start_->part});
  for (const auto& [label, stats] : evaluations_)
    fields.emplace_back(kEvaluatorPrefix + label,
                        std::vector{stats.count, stats.seconds, stats.first_seconds, stats.part});
  return json_line(fields);
}

void RuntimeEstimator::restore(const std::string& json) {
  to_skip_ = json_number(json, "to_skip");
  start_.reset();
  evaluations_.clear();
  for (const std::string& key : json_keys(json)) {
    if (key == "to_skip") continue;
    const auto numbers = json_numbers(json, key);
    if (key == "start" && numbers.size() == 2)
      start_ = {numbers[0], numbers[1]};
    else if (key.starts_with(kEvaluatorPrefix) && numbers.size() == 4)
      evaluations_[key.substr(std::string(kEvaluatorPrefix).size())] = {numbers[0], numbers[1], numbers[2],
                                                                        numbers[3]};
    else
      throw UserError("RuntimeEstimator: '" + key + "' is not part of the state");
  }
}

CallbackPtr RuntimeEstimatorOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<RuntimeEstimator>(skip_batches, time_unit);
}

}  // namespace tutti
