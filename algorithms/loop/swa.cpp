#include "algorithms/loop/swa.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "algorithms/loop/lasting_tensors.h"
#include "io/json/json_line.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "training/state.h"

namespace tutti {
namespace {

double annealed(int64_t update, int64_t steps, AnnealStrategy strategy) {
  const double t = std::clamp(static_cast<double>(update) / static_cast<double>(steps), 0.0, 1.0);
  return strategy == AnnealStrategy::kLinear ? t : (1 - std::cos(std::numbers::pi * t)) / 2;
}

// True after a batch, or after an epoch, that ends the training.
bool is_over(const State& state) {
  const bool last_of_epoch = state.timestamp.batch_in_epoch >= state.dataloader_len;
  if (state.max_duration.unit() == TimeUnit::kEpoch && last_of_epoch)
    return state.timestamp.epoch + 1 >= state.max_duration.count();
  return state.elapsed_duration().value() >= 1.0;
}

}  // namespace

double swa_learning_rate(double lr, double swa_lr, int64_t update, int64_t anneal_steps,
                         AnnealStrategy strategy) {
  const double before = annealed(update - 1, anneal_steps, strategy);
  const double now = annealed(update, anneal_steps, strategy);
  const double initial = before == 1 ? swa_lr : (lr - before * swa_lr) / (1 - before);
  return swa_lr * now + initial * (1 - now);
}

SWA::SWA(const Options& options) : options_(options) {
  const TimeUnit unit = options.update_interval.unit();
  if (unit != TimeUnit::kBatch && unit != TimeUnit::kEpoch)
    throw UserError("update_interval: expected batches or epochs");
  if (options.swa_start.unit() != options.swa_end.unit())
    throw UserError("swa_start and swa_end: expected the same unit");
  if (options.swa_start >= options.swa_end) throw UserError("swa_end: expected a time after swa_start");
  update_event_ = unit == TimeUnit::kBatch ? Event::kBatchEnd : Event::kEpochEnd;
}

void SWA::require(const State& state) const {
  warn_of_late_start(*this, "swa_start", options_.swa_start, update_event_, state);
}

bool SWA::match(Event event, const State& state) const {
  if (event == Event::kBeforeLoad) return true;
  if (completed_) return false;
  if (event == update_event_) return has_passed(options_.swa_start, state);
  if (state.composer || averaged_ == 0) return false;
  return event == Event::kFitEnd || (options_.schedule_swa_lr && event == Event::kBatchEnd);
}

void SWA::apply(Event event, State& state, Logger&) {
  if (event == Event::kBeforeLoad) {
    averages_ = copies_of(lasting_tensors(state));
    return;
  }
  if (event == Event::kFitEnd) {
    TUTTI_PROBE("swa: averages become the weights at the end of the fit");
    return complete(state);
  }
  const int64_t before = averaged_;
  if (event == update_event_) update(state);
  if (options_.schedule_swa_lr && (averaged_ > before || !state.composer)) set_rate(state);
  const bool ends = event == update_event_ && !state.composer && averaged_ > 0 && is_over(state);
  if (ends) TUTTI_PROBE("swa: averages become the weights in the last step");
  if (!ends && has_passed(options_.swa_end, state))
    TUTTI_PROBE("swa: averages become the weights at swa_end");
  if (ends || has_passed(options_.swa_end, state)) complete(state);
}

void SWA::update(State& state) {
  const bool own_rate = options_.swa_lr && !state.composer;
  if (counter_ == 0) swa_lr_ = own_rate ? *options_.swa_lr : state.services->scheduled_lr();
  if (counter_ % options_.update_interval.count() == 0) average(state);
  ++counter_;
}

void SWA::average(const State& state) {
  const at::NoGradGuard no_grad;
  const auto weights = lasting_tensors(state);
  const double share = 1.0 / static_cast<double>(++averaged_);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (averaged_ == 1 || i >= state.views.size())
      averages_[i].second.copy_(weights[i].second);
    else
      averages_[i].second.lerp_(weights[i].second, share);
  }
}

// Composer's schedule overwrites its rate at the next step, and so each update starts from the schedule's.
void SWA::set_rate(State& state) const {
  const double lr = state.services->scheduled_lr();
  if (state.composer) {
    state.next_lr =
        swa_learning_rate(lr, swa_lr_, averaged_, options_.anneal_steps, options_.anneal_strategy);
    return;
  }
  const double now = annealed(averaged_, options_.anneal_steps, options_.anneal_strategy);
  state.next_lr = swa_lr_ * now + lr * (1 - now);
}

void SWA::complete(State& state) {
  copy_tensors(lasting_tensors(state), averages_);
  completed_ = true;
  if (!state.inference_tensors.empty()) {
    TUTTI_PROBE("swa: its averages meet those of EMA");
    serve(state);
  }
}

// What evaluations use in place of the weights, EMA's averages, is of weights from before.
void SWA::serve(State& state) const {
  if (!options_.replace_ema)
    return state.warn_on_rank_zero(
        "SWA: its averages are the weights now, but evaluations and exports use EMA's averages, which are of "
        "weights "
        "from before; replace_ema = true starts EMA's afresh from SWA's, false leaves them as they are");
  if (!*options_.replace_ema) return;
  const at::NoGradGuard no_grad;
  for (const auto& [name, average] : averages_)
    if (const auto served = state.inference_tensors.find(name); served != state.inference_tensors.end())
      served->second.copy_(average);
}

std::string SWA::state() const {
  if (counter_ == 0) return "";
  return json_line({{"counter", counter_},
                    {"averaged", averaged_},
                    {"swa_lr", swa_lr_},
                    {"completed", int64_t{completed_}}});
}

void SWA::restore(const std::string& json) {
  counter_ = json_integer(json, "counter", 0);
  averaged_ = json_integer(json, "averaged", 0);
  swa_lr_ = json_number(json, "swa_lr");
  completed_ = json_integer(json, "completed", 0) != 0;
  if (completed_) TUTTI_PROBE("resume: after the end of SWA");
  if (averaged_ > 0 && !completed_) TUTTI_PROBE("resume: in the middle of SWA");
}

AlgorithmPtr SWAOptions::make(const Setting& section) const try {
  return std::make_shared<SWA>(*this);
} catch (const UserError& error) {
  section.fail(error);
}

}  // namespace tutti
