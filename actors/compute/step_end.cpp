#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "actors/compute/compute.h"
#include "runtime/error.h"
#include "tensors/torch_error.h"

namespace tutti {
namespace {

constexpr const char* kAtBatchEnd = "batch_end";
constexpr const char* kAtEpochEnd = "epoch_end";
constexpr const char* kAtIterationEnd = "iteration_end";
constexpr const char* kLeft = "algorithms left";  // that had no memory

bool is_of_evaluation(Event event) { return event >= Event::kEvalBeforeAll && event < Event::kPredictStart; }

}  // namespace

// What a listener needs outside of forward and backward cannot be had in smaller parts. A callback changes
// nothing that is trained: the run ends by the next verdict, and what was trained until then is saved.
void Compute::run_event(Context& context, Event event) try {
  if (unfinished_ && unfinished_->event != name(event)) {
    if (unfinished_->at.empty())
      engine_->finish_event(event, {}, agreement(context));  // no step's: logs begin anew
    return;
  }
  if (!unfinished_)
    engine_->run_event(event, agreement(context));
  else
    engine_->finish_event(event, std::exchange(unfinished_, {})->left, agreement(context));
} catch (const c10::OutOfMemoryError& error) {
  gave_up_ = true;
  log_.error(std::string(name(event)) + " after step " + std::to_string(state_.timestamp.batch) +
             ": out of memory, and it cannot be done in smaller parts: " + one_line(error));
}

EventAgreement Compute::agreement(Context& context) {
  EventAgreement agreement;
  agreement.acts = [&] {
    wait_for_copy(context);  // they may change what is being copied
    return static_cast<std::size_t>(recorder_.foretold(kLeft).value_or(0));
  };
  agreement.acted = [&](const ActedAlgorithms& acted) { agree(context, acted); };
  return agreement;
}

// What algorithms change outlasts the step, and how the run goes on may hang on it. So where one had no
// memory, all ranks give up here, and who is saved is whoever has come furthest.
void Compute::agree(Context& context, const ActedAlgorithms& acted) {
  const auto mine = recorder_.answer(kLeft, static_cast<double>(acted.left));
  const std::vector<double> left = of_all_ranks(context, mine);
  const auto most = std::ranges::max_element(left);
  if (*most == 0) {
    evaluation_changed_ = true;
    return;
  }
  const std::string where = name(acted.event) + (" after step " + std::to_string(state_.timestamp.batch));
  if (!acted.shortage.empty()) log_.error(where + ": out of memory: " + acted.shortage);
  const auto total = static_cast<double>(acted.order.size());
  keep_rest(acted, left);
  std::vector<Shortage> all(left.size());
  for (std::size_t r = 0; r < left.size(); ++r) all[r].ranks = left[r] > 0 ? 1 : 0;
  const auto first = std::ranges::find_if(left, [](double one) { return one > 0; });
  const auto& algorithm = acted.order[static_cast<std::size_t>(total - *first)];
  const std::string who = where + ": " + shortage_text(all) + " in algorithm " + algorithm->name();
  if (acted.event == Event::kAfterTrainBatch) engine_->out_of_memory(who);
  throw TooLarge(who + ", which cannot be done in smaller parts");
}

// What an evaluation that is cut short has begun. One in which memory did not suffice for that ends there.
void Compute::undo(Context& context, Event begin, Event end) {
  if (!savers_) engine_->undo(begin, end, agreement(context));
}

// An event that is begun is finished by the run that goes on from here. The step whose gradients it was about
// is void, and an evaluation is done again, unless it has changed what is trained. Until training has begun
// there is nothing to save.
void Compute::keep_rest(const ActedAlgorithms& acted, const std::vector<double>& left) {
  const bool evaluating = is_of_evaluation(acted.event);
  double saved = *std::ranges::min_element(left);
  if (evaluating) saved = evaluation_changed_ ? -1 : static_cast<double>(acted.order.size());
  const bool is_void = acted.event == Event::kAfterTrainBatch;
  savers_.emplace();
  if (!began_fit_) return;
  for (std::size_t r = 0; r < left.size(); ++r)
    if (is_void || left[r] == saved) savers_->push_back(static_cast<int>(r));
  if (evaluating || is_void || acted.event == Event::kFitStart) return;
  rest_.event = name(acted.event);
  for (std::size_t i = acted.order.size() - static_cast<std::size_t>(saved); i < acted.order.size(); ++i)
    rest_.left.push_back(engine_->name_of(*acted.order[i]));
}

std::vector<double> Compute::of_all_ranks(Context& context, double mine) const {
  if (options_.world == 1) return {mine};
  at::Tensor row = at::zeros({options_.world}, at::kDouble);
  row.data_ptr<double>()[options_.rank] = mine;
  const at::Tensor all = context.ask<Summed>(cast_.sync, SumDoubles{row}).values;
  return {all.const_data_ptr<double>(), all.const_data_ptr<double>() + all.numel()};
}

void Compute::after_step(Context& context, const Timestamp& before, const Verdict& verdict) {
  rest_ = {kAtBatchEnd, evaluations_.due_at_batch_end(before)};
  run_event(context, Event::kBatchEnd);
  stop_agreed_ = verdict.stop > 0;
  checkpoint_due_ = checkpoint_every_->at_batch_end(before, state_.timestamp) || verdict.checkpoint_now > 0;
  end_batch(context);
}

// What an earlier start has left of a step.
void Compute::complete(Context& context) {
  logger_.begin_step(state_.timestamp.batch);
  if (!rest_.event.empty()) unfinished_ = rest_;
  rest_.event.clear();
  rest_.left.clear();
  if (rest_.at == kAtBatchEnd) {
    if (unfinished_) run_event(context, Event::kBatchEnd);
    end_batch(context);
  } else if (rest_.at == kAtEpochEnd) {
    if (unfinished_) run_event(context, Event::kEpochEnd);
    end_epoch(context);
  } else if (rest_.at == kAtIterationEnd) {
    end_iteration(context);
  } else {
    const bool trained = unfinished_ && unfinished_->event == name(Event::kFitEnd);
    if (trained != over()) unfinished_.reset();  // another max_duration than the earlier start's
    over() ? finish(context, /*stopped=*/false) : await_batch(context);
  }
}

void Compute::end_batch(Context& context) {
  if (!evaluated(context)) return;
  run_event(context, Event::kBatchCheckpoint);
  if (state_.timestamp.batch_in_epoch < options_.batches_per_epoch) {
    end_step(context);
    return;
  }
  if (!over())
    run_event(context, Event::kBeforeDataloader);  // the look that finds nothing more
  else
    unfinished_.reset();  // that was it, and there was more to train
  trainer_log_.epoch_trained();
  const Timestamp before = state_.timestamp;
  rate_.advance_epoch(before, state_.schedule);
  show_rate();
  state_.timestamp.to_next_epoch();
  rest_ = {kAtEpochEnd, evaluations_.due_at_epoch_end(before)};
  run_event(context, Event::kEpochEnd);
  checkpoint_due_ = checkpoint_every_->at_epoch_end(before, state_.timestamp) || checkpoint_due_;
  end_epoch(context);
}

void Compute::end_epoch(Context& context) {
  if (!evaluated(context)) return;
  run_event(context, Event::kEpochCheckpoint);
  if (iteration_length_ == 0 || state_.timestamp.epoch_in_iteration < iteration_length_) {
    end_step(context);
    return;
  }
  state_.timestamp.to_next_iteration();
  rest_ = {kAtIterationEnd};
  end_iteration(context);
}

void Compute::end_iteration(Context& context) {
  run_event(context, Event::kIterationEnd);
  run_event(context, Event::kIterationCheckpoint);
  end_step(context);
}

void Compute::end_step(Context& context) {
  rest_ = {};
  send_logged(context);
  if (over() || stop_agreed_)
    finish(context, /*stopped=*/!over());
  else {
    if (checkpoint_due_) snapshot(context, /*last=*/false);
    await_batch(context);
  }
}

// Whether those that are due are done; a run that is asked to stop leaves them to the one that goes on from
// here.
bool Compute::evaluated(Context& context) {
  if (rest_.labels.empty()) return true;
  logger_.evaluation_due();
  const auto metrics = stop_agreed_ ? std::nullopt : evaluate(context, rest_.labels);
  if (metrics) {
    rest_.labels.clear();
    observe(*metrics);
  } else {
    finish(context, /*stopped=*/true);
  }
  return metrics.has_value();
}

void Compute::send_logged(Context& context) {
  logger_.end_step();
  queues_.send(context, logger_.take_entries());
}

}  // namespace tutti
