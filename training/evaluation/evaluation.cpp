#include "training/evaluation/evaluation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "data/aligned.h"
#include "data/dataset.h"
#include "models/layers/lent_zeros.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"
#include "training/evaluation/answers.h"
#include "training/metrics/factory.h"
#include "training/metrics/logged_metrics.h"
#include "training/metrics/loss_metrics.h"
#include "training/step_rows.h"
#include "training/work_in_parts.h"

namespace tutti {
namespace {

// Counts of an evaluation, summed over ranks.
struct Counts {
  double samples = 0;
  double tokens = 0;
  double seconds = 0;
  double stopped = 0;    // ranks
  double too_large = 0;  // ranks
  std::string failure;   // this rank's lack of memory for a single sample
};

// Of each part of the rank's batches. A metric that keeps its measurements, whose order is nothing, has them
// all in the first.
using MetricsOfParts = std::vector<std::vector<MetricPtr>>;

using Places = std::vector<std::span<double>>;

// The sums of the metrics that keep their measurements, or of the others.
Places sums_of(const std::vector<MetricPtr>& metrics, bool kept) {
  Places places;
  for (const auto& metric : metrics)
    if (metric->keeps_measurements() == kept) places.emplace_back(metric->sums());
  return places;
}

int64_t count_of(const Places& places) {
  int64_t count = 0;
  for (const auto& place : places) count += std::ssize(place);
  return count;
}

double* copy_from(const Places& places, double* to) {
  for (const auto& place : places) to = std::ranges::copy(place, to).out;
  return to;
}

const double* copy_to(const Places& places, const double* from) {
  for (const auto& place : places) {
    std::copy_n(from, place.size(), place.begin());
    from += place.size();
  }
  return from;
}

// The sums of grains have rows of their own, which are added in grain order.
void sum_over_ranks(const State& state, MetricsOfParts& parts, Counts& counts) {
  RankServices& services = *state.services;
  const RankTopology& place = state.topology;
  for (auto& metric : parts.front())
    metric->gather([&](const at::Tensor& numbers) { services.sum_over_ranks(numbers); }, place.rank,
                   place.world);
  const Places kept = sums_of(parts.front(), true), first = sums_of(parts.front(), false);
  const int64_t row = count_of(first), rows = place.has_grains ? place.data_world : 1;
  const std::array all{counts.samples, counts.tokens, counts.seconds, counts.stopped, counts.too_large};
  const at::Tensor values = at::zeros({std::ssize(all) + count_of(kept) + rows * row}, at::kDouble);
  double* const numbers = values.data_ptr<double>();
  double* const sums = copy_from(kept, std::ranges::copy(all, numbers).out);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const int64_t of =
        place.has_grains ? place.data_rank + static_cast<int64_t>(part) * place.data_stride : 0;
    const Places places = sums_of(parts[part], false);
    TUTTI_ASSERT(count_of(places) == row, "a metric keeps measurements, and does not say so");
    if (of < rows) copy_from(places, sums + of * row);
  }
  services.sum_over_ranks(values);
  counts = {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], std::move(counts.failure)};
  for (int64_t other = 1; other < rows; ++other)
    for (int64_t i = 0; i < row; ++i) sums[i] += sums[other * row + i];
  copy_to(first, copy_to(kept, numbers + std::ssize(all)));
}

using Sums = std::vector<std::vector<double>>;

Sums copied_sums(const MetricsOfParts& parts) {
  Sums sums;
  for (const auto& metrics : parts)
    for (const auto& metric : metrics) sums.push_back(metric->sums());
  return sums;
}

// Evaluates batches, each in portions. Where no rank has the whole model, all ranks take the same number of
// forwards of each batch. Where a model compares the samples of a step, portions are measured when the ranks
// have gathered the rows of all.
class BatchEvaluation {
 public:
  BatchEvaluation(State& state, Engine& engine, const Evaluator& evaluator, MetricsOfParts& metrics)
      : state_(state),
        engine_(engine),
        metrics_(metrics),
        planned_(evaluator.microbatch),
        fits_(evaluator.microbatch),
        forwards_(forwards_of_part(evaluator.section)),
        largest_(largest_part(evaluator.global_batch, state.topology.data_world)),
        together_(state.services->evaluates_together()) {
    if (state.model->compares_step()) rows_.emplace(state);
  }

  // `batch`: null if this rank was asked to stop, empty if it has no samples. If memory runs out, on any of
  // the ranks that wait for each other, repeats the batch in smaller parts, as later batches; metrics are
  // sums, so a rank that evaluates alone need not say so. False if the evaluation ends, for the counts of
  // ranks that stop or fail. `parts`: of the batch, one behind the other.
  bool run(const Batch* batch, std::vector<Portion> parts, Counts& counts) {
    parts_ = std::move(parts);
    const bool alone = !together_ && !rows_;
    const Sums before = copied_sums(metrics_);
    const Timestamp began = state_.eval_timestamp;
    const int64_t samples = batch ? batch->samples() : 0;
    if (batch && samples == 0) TUTTI_PROBE("evaluation: a rank without samples");
    if (batch && samples == 0 && alone) return true;
    for (;;) {
      const auto failure = attempt(samples > 0 ? *batch : Batch());
      const at::Tensor flags = at::tensor({batch ? 0.0 : 1.0, failure ? 1.0 : 0.0}, at::kDouble);
      if (!alone) state_.services->sum_over_ranks(flags);
      counts.stopped = flags[0].item<double>() > 0 ? 1 : 0;
      if (counts.stopped > 0 && batch)
        TUTTI_PROBE("evaluation: other ranks were asked to stop before this rank");
      if (counts.stopped > 0) return false;
      if (flags[1].item<double>() == 0) return true;
      if (failure)
        TUTTI_PROBE("evaluation: memory ran out on this rank");
      else
        TUTTI_PROBE("evaluation: memory ran out on another rank, and this rank repeats the batch");
      state_.eval_timestamp = began;
      auto sums = before.begin();
      for (auto& metrics : metrics_)
        for (auto& metric : metrics) metric->sums() = *sums++;
      const int64_t most = std::min({fits_, planned_, alone ? samples : largest_});
      fits_ = (most + 1) / 2;
      if (most > 1 && !state_.topology.has_grains) continue;
      if (most == 1) TUTTI_PROBE("evaluation: memory ran out with one sample at a time");
      counts.too_large = failure ? 1 : 0;
      if (failure) counts.failure = ": " + reason_of_lack(*failure);
      return false;
    }
  }

 private:
  // Of a batch that may be empty. Returns the error if memory ran out on this rank.
  std::optional<std::string> attempt(const Batch& batch) {
    if (rows_) rows_->begin_pass();
    engine_.set_logging(true);
    auto failure = state_.services->attempt([&] {
      const auto work = [&] { evaluate_batch(batch); };
      const int64_t forwards = forwards_ * std::ssize(portions(largest_)) * std::ssize(metrics_);
      together_ ? state_.with_model(true, work, forwards) : work();
    });
    if (rows_ && !rows_->gathered()) rows_->gather(/*out_of_memory=*/true);  // other ranks wait
    if (rows_) rows_->drop();
    compared_.clear();
    state_.batch = state_.outputs = {};
    return failure;
  }

  void evaluate_batch(const Batch& batch) {
    if (batch.samples() > 0) forward(batch);
    if (rows_ && !gather()) return;
    if (batch.samples() > 0) end_batch();
  }

  // False if memory has run out on another rank.
  bool gather() {
    state_.services->end_forwards();
    return rows_->gather(/*out_of_memory=*/false);
  }

  std::vector<Portion> portions(int64_t samples) const {
    return portions_of({.samples = samples}, planned_, fits_);
  }

  void forward(const Batch& batch) {
    if (!state_.topology.has_grains) return forward_part(batch);
    int64_t begin = 0;
    for (part_ = 0; part_ < metrics_.size(); ++part_) {
      const int64_t samples = parts_[part_].samples;
      engine_.set_logging(part_ == 0);
      if (samples > 0) forward_part(aligned(batch.narrow(begin, samples)));
      begin += samples;
    }
    engine_.set_logging(true);
  }

  void forward_part(const Batch& batch) {
    state_.batch = batch;
    engine_.run_event(Event::kEvalBatchStart);
    const Batch whole = state_.batch;
    if (fits_ < std::min(planned_, whole.samples()))
      TUTTI_PROBE("evaluation: later batches stay in smaller parts");
    for (const Portion& portion : portions(whole.samples())) {
      state_.batch = samples_of(whole, /*first=*/0, portion);
      engine_.run_event(Event::kEvalBeforeForward);
      state_.outputs = evaluated_outputs(state_, state_.batch);
      engine_.run_event(Event::kEvalAfterForward);
      if (!rows_) {
        measure(state_.batch, state_.outputs);
        continue;
      }
      rows_->add(state_.model->rows(state_.outputs), /*loss_weight=*/0, part_);
      compared_.push_back({state_.batch, state_.outputs, part_});
    }
  }

  void end_batch() {
    int64_t first = 0;
    part_ = 0;
    for (const auto& [batch, outputs, part] : compared_) {
      if (std::exchange(part_, part) != part) first = 0;
      measure(rows_->add_to(batch, first, part), outputs);
      first += batch.samples();
    }
    state_.eval_timestamp.to_next_batch(0, 0, 0.0);
    engine_.run_event(Event::kEvalBatchEnd);
  }

  void measure(const Batch& batch, const Outputs& outputs) {
    for (std::size_t m = 0; m < metrics_[part_].size(); ++m) {
      const std::size_t part = metrics_[part_][m]->keeps_measurements() ? 0 : part_;
      state_.update_metric(batch, outputs, *metrics_[part][m]);
    }
  }

  State& state_;
  Engine& engine_;
  MetricsOfParts& metrics_;
  std::vector<Portion> parts_;  // of the current batch
  std::size_t part_ = 0;
  const int64_t planned_;   // samples of a portion, by the recipe
  int64_t fits_;            // samples that fit into memory: portions are cut further
  const int64_t forwards_;  // of a portion, at most
  const int64_t largest_;   // the most samples of a batch on any rank
  const bool together_;
  std::optional<StepRows> rows_;  // none: the model does not compare samples of a step
  struct Compared {
    Batch batch;
    Outputs outputs;
    std::size_t part = 0;
  };
  std::vector<Compared> compared_;  // portions that wait for the rows
};

// By measured_name() and part.
LoggedMetrics logged_values(const std::vector<MetricPtr>& metrics) {
  LoggedMetrics all;
  for (const auto& metric : metrics) {
    const std::vector<std::string> parts = metric->parts();
    const std::vector<double> values = metric->values();
    TUTTI_ASSERT(parts.size() == values.size(), metric->name() + " has other parts than values");
    for (std::size_t i = 0; i < parts.size(); ++i)
      all.emplace_back(metric->measured_name() + parts[i], values[i]);
  }
  return all;
}

// This rank's grains of a batch; none where batches are not cut into grains.
std::vector<Portion> grains_of_batch(const State& state, const Evaluator& evaluator, int64_t batch) {
  if (!state.topology.has_grains) return {};
  const int64_t left = evaluator.data->size() - batch * evaluator.global_batch;
  return parts_of_rank(std::min(evaluator.global_batch, left), state.topology);
}

// Said at the first evaluation.
void tell_notes(const State& state, const std::vector<MetricPtr>& metrics) {
  for (const auto& metric : metrics) {
    const std::string first = state.dataloader_label + "/" + metric->measured_name() + metric->parts()[0];
    const std::string note = state.metric_values.contains(first) ? "" : metric->note();
    if (!note.empty()) state.warn_on_rank_zero("evaluation '" + state.dataloader_label + "': " + note);
  }
}

void store_results(State& state, const std::vector<MetricPtr>& metrics, const Counts& counts) {
  state.eval_timestamp.sample = static_cast<int64_t>(counts.samples);
  state.eval_timestamp.token = static_cast<int64_t>(counts.tokens);
  state.eval_timestamp.total_wct = counts.seconds;
  for (const auto& [name, value] : logged_values(metrics))
    state.metric_values[state.dataloader_label + "/" + name] = value;
}

bool names_a_line(const std::exception& error) {
  const auto* mistake = dynamic_cast<const UserError*>(&error);
  return mistake && mistake->position().line > 0;
}

}  // namespace

void try_metrics(State& state, const Evaluator& evaluator, const Dataset& data) {
  const at::NoGradGuard no_grad;
  const LentZeros zeros(*state.model, state.device);
  const EvaluationMode evaluating(*state.model);
  const auto metrics = evaluator.metrics(*state.model, state.composer);
  const int64_t first = 0;
  const Batch batch = state.device.take(with_short_answers(data.get({&first, 1}, {state.seed})));
  std::string what = "the model cannot evaluate the first sample: ", way_out;
  try {
    const Outputs outputs = evaluated_outputs(state, batch);
    for (const auto& metric : metrics) {
      what = metric->measured_name() + " cannot measure " +
             (outputs.is_leaf() ? "this model on this data: " : "the outputs of this model: ");
      way_out = metric->name() == ModelLoss::kName ? "; with loss = false the loss is not measured" : "";
      state.update_metric(batch, outputs, *metric);
    }
  } catch (const std::exception& error) {
    if (is_lack_of_memory(error) || names_a_line(error)) throw;
    evaluator.section.fail(what + one_line(error) + way_out);
  }
}

std::optional<LoggedMetrics> evaluate(State& state, Engine& engine, const Evaluator& evaluator,
                                      EvaluationRun& run) {
  const at::NoGradGuard no_grad;
  const DataScope data(state, evaluator.label, evaluator.data_of(state.topology.rank).get());
  state.eval_timestamp = {};
  state.evaluation_cut = false;
  Model& model = *state.model;
  std::optional<EvaluationMode> evaluating(model);
  MetricsOfParts parts;
  for (int part = 0; part < (state.topology.has_grains ? state.topology.data_parts : 1); ++part)
    parts.push_back(evaluator.metrics(model, state.composer));
  const std::vector<MetricPtr>& metrics = parts.front();
  const auto begin_batch = [&](int64_t index) {
    for (auto& metrics : parts)
      for (auto& metric : metrics) metric->begin_batch(index, evaluator.batches);
  };
  begin_batch(0);  // ranks that stop have as many sums
  Counts counts;
  run.run_event(engine, Event::kEvalStart);
  RankServices& services = *state.services;
  const bool together = services.evaluates_together();
  if (!together) services.hold_model(true, 0);
  BatchEvaluation evaluation(state, engine, evaluator, parts);
  bool goes_on = true;
  for (int64_t b = 0; b < evaluator.batches && goes_on; ++b) {
    const auto batch = run.fetch(b);
    begin_batch(b);
    if (batch && batch->samples() > 0) {
      counts.samples += static_cast<double>(batch->samples());
      counts.tokens += static_cast<double>(model.tokens(*batch));
    }
    goes_on = evaluation.run(batch ? &*batch : nullptr, grains_of_batch(state, evaluator, b), counts);
  }
  evaluating.reset();
  if (!together) services.free_model();
  counts.seconds = run.seconds();
  sum_over_ranks(state, parts, counts);
  state.evaluation_cut = counts.too_large > 0 || counts.stopped > 0;
  if (state.evaluation_cut) run.run_event(engine, Event::kEvalEnd);
  if (counts.too_large > 0)
    throw AgreedOutOfMemory(
        EndKind::kOutOfMemoryInEvaluation,
        "evaluation '" + evaluator.label + "' after step " + std::to_string(state.timestamp.batch) +
            ": out of memory on " + std::to_string(static_cast<int>(counts.too_large)) + " of " +
            std::to_string(state.topology.world) + " ranks with " +
            (state.topology.has_grains ? "a grain" : "one sample at a time") +
            (state.model->compares_step() ? ", compared with its whole batch" : "") + counts.failure);
  if (counts.stopped > 0) return std::nullopt;
  tell_notes(state, metrics);
  store_results(state, metrics, counts);
  LoggedMetrics values = logged_values(metrics);
  for (auto& [name, value] : values) name = "metrics/" + evaluator.label + "/" + name;
  run.run_event(engine, Event::kEvalEnd);
  return values;
}

namespace {

void predict_batch(State& state, Engine& engine, const OutputsCallback& on_outputs) {
  engine.run_event(Event::kPredictBatchStart);
  engine.run_event(Event::kPredictBeforeForward);
  state.outputs = evaluated_outputs(state, state.batch);
  guard_memory("the outputs of a prediction", [&] {  // which must not be reported twice
    engine.run_event(Event::kPredictAfterForward);
    if (on_outputs) on_outputs(state.outputs);
    engine.run_event(Event::kPredictBatchEnd);
  });
}

// Sets up the state for prediction, and restores the state at the end.
class Predicting {
 public:
  Predicting(State& state, const Evaluator& evaluator)
      : state_(state), data_(state, evaluator.label, evaluator.data.get()), evaluating_(*state.model) {}
  ~Predicting() {
    state_.batch = {};
    state_.outputs = {};
  }
  Predicting(const Predicting&) = delete;

 private:
  State& state_;
  DataScope data_;
  EvaluationMode evaluating_;
};

}  // namespace

void predict(State& state, Engine& engine, const Evaluator& evaluator, const OutputsCallback& on_outputs) {
  const at::NoGradGuard no_grad;
  const Predicting predicting(state, evaluator);
  engine.run_event(Event::kPredictStart);
  const auto predict_rows = [&](int64_t first, int64_t count) {
    std::vector<int64_t> rows(count);
    std::iota(rows.begin(), rows.end(), first);
    state.batch = state.device.take(evaluator.data->get(rows, {state.seed}));
    predict_batch(state, engine, on_outputs);
  };
  work_in_parts(state, state.topology.rank == 0,
                {.items = evaluator.data->size(),
                 .part = std::min(evaluator.global_batch, evaluator.microbatch),
                 .work = predict_rows});
  engine.run_event(Event::kPredictEnd);
}

}  // namespace tutti
