#include "algorithms/loop/ema.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_lerp.h>

#include <cmath>

#include "algorithms/loop/lasting_tensors.h"
#include "io/checkpoint/checkpoint.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "training/state.h"

namespace tutti {
namespace {

bool is_counted(const Time& time) {
  return time.unit() == TimeUnit::kBatch || time.unit() == TimeUnit::kEpoch;
}

Time interval_of(const EMA::Options& options) {
  if (options.update_interval) return *options.update_interval;
  return {1, options.half_life ? options.half_life->unit() : TimeUnit::kBatch};
}

double smoothing_of(const EMA::Options& options, const Time& interval) {
  if (options.half_life.has_value() == options.smoothing.has_value())
    throw UserError("expected either half_life or smoothing");
  if (!is_counted(interval)) throw UserError("update_interval: expected batches or epochs");
  if (!options.half_life) return *options.smoothing;
  if (options.half_life->unit() != interval.unit())
    throw UserError("half_life and update_interval: expected the same unit, batches or epochs");
  return std::exp2(-interval.value() / options.half_life->value());
}

}  // namespace

std::string evaluated_name(const TensorSource& saved, const std::string& name) {
  const std::string average = std::string(kSavedEma) + '/' + name;
  return saved.contains(average) ? average : std::string(kModelPrefix) + name;
}

void compute_ema(const std::vector<at::Tensor>& weights, const std::vector<at::Tensor>& averages,
                 double smoothing) {
  TUTTI_ASSERT(weights.size() == averages.size(), "as many averages as weights");
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> from, to;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (at::isFloatingType(averages[i].scalar_type())) {
      from.push_back(weights[i].detach());
      to.push_back(averages[i].detach());
    } else {
      averages[i].copy_(averages[i].to(at::kFloat).lerp(weights[i].to(at::kFloat), 1 - smoothing));
    }
  }
  if (!to.empty()) at::_foreach_lerp_(to, from, 1 - smoothing);
}

EMA::EMA(const Options& options)
    : start_(options.ema_start),
      interval_(interval_of(options)),
      smoothing_(smoothing_of(options, interval_)) {}

Event EMA::update_event() const {
  return interval_.unit() == TimeUnit::kBatch ? Event::kBatchEnd : Event::kEpochEnd;
}

bool EMA::is_update(Event event, const State& state) const {
  return event == update_event() && (started_ || has_passed(start_, state));
}

void EMA::require(const State& state) const {
  warn_of_late_start(*this, "ema_start", start_, update_event(), state);
}

bool EMA::match(Event event, const State& state) const {
  switch (event) {
    case Event::kBeforeLoad:
      return true;
    case Event::kAfterLoad:
    case Event::kEvalStart:
    case Event::kPredictStart:
      return started_;
    case Event::kEvalEnd:
    case Event::kPredictEnd:
      return swapped_;
    default:
      return is_update(event, state);
  }
}

void EMA::apply(Event event, State& state, Logger&) {
  if (event == Event::kBeforeLoad)
    averages_ = copies_of(lasting_tensors(state));  // a checkpoint's tensors are read into these
  else if (event == Event::kAfterLoad)
    publish(state);
  else if (event == Event::kBatchEnd || event == Event::kEpochEnd)
    update(state);
  else
    swap(state);
}

void EMA::update(State& state) {
  const at::NoGradGuard no_grad;
  if (!std::exchange(started_, true)) {
    if (state.timestamp.batch > 1) TUTTI_PROBE("ema: averages begin in the middle of training");
    copy_tensors(averages_, lasting_tensors(state));
    publish(state);
  }
  if (std::fmod(state.timestamp.get(interval_.unit()).value(), interval_.value()) == 0)
    compute_ema(tensors_of(lasting_tensors(state)), tensors_of(averages_), smoothing_);
}

void EMA::publish(State& state) const {
  for (const auto& [name, tensor] : averages_) state.inference_tensors[name] = tensor;
}

void EMA::swap(State& state) {
  const at::NoGradGuard no_grad;
  const auto weights = lasting_tensors(state);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const at::Tensor average = averages_[i].second.clone();
    averages_[i].second.copy_(weights[i].second);
    weights[i].second.copy_(average);
  }
  if (swapped_ && state.evaluation_cut)
    TUTTI_PROBE("ema: weights come back after an evaluation that was cut");
  swapped_ = !swapped_;
}

AlgorithmPtr EMAOptions::make(const Setting& section) const try {
  EMAOptions options = *this;
  if (!half_life && !smoothing) options.half_life = Time(1000, TimeUnit::kBatch);
  return std::make_shared<EMA>(options);
} catch (const UserError& error) {
  section.fail(error);
}

}  // namespace tutti
