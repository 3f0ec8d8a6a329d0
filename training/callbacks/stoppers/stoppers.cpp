#include "training/callbacks/stoppers/stoppers.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "io/formats/run_metrics.h"
#include "io/json/json_line.h"
#include "recipe/catalog.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"
#include "runtime/probe/probe.h"
#include "runtime/text.h"
#include "training/state.h"

namespace tutti {
namespace {

// "loss" of "metrics/eval/loss" and "eval/loss", for the label "eval".
std::string name_in(const WatchedMetric::Options& options) {
  const std::string label = options.dataloader_label + '/';
  const std::string name = evaluated_name(options.monitor.text());
  return name.starts_with(label) ? name.substr(label.size()) : name;
}

std::string number(double value) { return (std::ostringstream() << value).str(); }

bool is_greater(const WatchedMetric::Options& options, bool composer) {
  const std::string comp = lower_case(options.comp);
  if (comp.empty()) return !less_is_better(options.monitor.text(), composer);
  if (comp == "greater" || comp == "gt") return true;
  if (comp == "less" || comp == "lt") return false;
  throw UserError("comp: expected greater, gt, less or lt, found '" + options.comp + "'");
}

}  // namespace

WatchedMetric::WatchedMetric(Options options)
    : options_(std::move(options)),
      name_(name_in(options_)),
      greater_(is_greater(options_, /*composer=*/false)),
      composers_greater_(is_greater(options_, /*composer=*/true)) {}

bool WatchedMetric::better(double value, double other, const State& state) const {
  return (state.composer ? composers_greater_ : greater_) ? value > other : value < other;
}

void WatchedMetric::require(const State& state) const {
  const auto measured = state.measured.find(options_.dataloader_label);
  if (!state.measured.empty() && measured == state.measured.end())
    options_.monitor.fail("nothing is measured under the label \"" + options_.dataloader_label + "\"");
  const auto known = state.measured.empty() ? state.model->get_metrics(options_.dataloader_label == "train")
                                            : measured->second;
  if (std::find(known.begin(), known.end(), name_) != known.end()) return;
  for (const auto& [label, metrics] : state.measured)
    if (name_.starts_with(label + '/') && std::ranges::count(metrics, name_.substr(label.size() + 1)) > 0)
      options_.monitor.fail("it is measured under another label than dataloader_label = \"" +
                            options_.dataloader_label + "\"; set dataloader_label = \"" + label + "\"");
  const std::string near = nearest_name(name_, known);
  options_.monitor.fail("there is no such metric; " +
                        (known.empty() ? "it measures none" : "it measures " + joined(known)) +
                        (near.empty() ? "" : "; did you mean " + near + "?"));
}

double WatchedMetric::value(const State& state) const {
  const auto metric = state.metric_values.find(options_.dataloader_label + "/" + name_);
  if (metric == state.metric_values.end())
    options_.monitor.fail("there is no such metric of \"" + options_.dataloader_label + "\"");
  return metric->second;
}

std::string WatchedMetric::text(double value) const {
  return name_ + " of " + options_.dataloader_label + " is " + number(value);
}

EarlyStopper::EarlyStopper(WatchedMetric metric, double min_delta, const Time& patience)
    : MetricStopper(std::move(metric), patience.unit() == TimeUnit::kBatch),
      min_delta_(std::abs(min_delta)),
      patience_(patience) {
  if (patience.unit() != TimeUnit::kEpoch && patience.unit() != TimeUnit::kBatch)
    throw UserError("patience: expected epochs or batches, found " + patience.text());
}

void EarlyStopper::check(double value, State& state) {
  const Time now = state.timestamp.get(patience_.unit());
  const bool is_first = !best_ || (std::isnan(best_->value) && !std::isnan(value));
  if (is_first ||
      (metric().better(value, best_->value, state) && std::abs(value - best_->value) > min_delta_))
    best_ = {value, now};
  if (now - best_->at <= patience_) return;
  TUTTI_PROBE("early stopper: no improvement for longer than its patience");
  state.stop_training(metric().text(value) + ", no better than " + number(best_->value) + " for more than " +
                      patience_.text());
}

std::string EarlyStopper::state() const {
  if (!best_) return "";
  return json_line({{"best", best_->value}, {"best_at", best_->at.value()}});
}

void EarlyStopper::restore(const std::string& json) {
  TUTTI_PROBE("resume: an early stopper knows its best value");
  best_ = {json_number(json, "best"), Time(json_number(json, "best_at"), patience_.unit())};
}

void ThresholdStopper::check(double value, State& state) {
  if (metric().better(value, threshold_, state))
    state.stop_training(metric().text(value) + ", better than " + number(threshold_));
}

void NaNMonitor::after_train_batch(State& state, Logger&) {
  if (!std::isnan(state.train_loss)) return;
  throw OperatingError("NaNMonitor: the training loss of step " + std::to_string(state.timestamp.batch + 1) +
                       " is not a number");
}

CallbackPtr EarlyStopperOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<EarlyStopper>(WatchedMetric(*this), min_delta, patience);
}

CallbackPtr NaNMonitorOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<NaNMonitor>();
}

CallbackPtr ThresholdStopperOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<ThresholdStopper>(WatchedMetric(*this), threshold, stop_on_batch);
}

}  // namespace tutti
