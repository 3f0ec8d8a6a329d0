#include "training/evaluation/evaluation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "data/dataset.h"
#include "models/layers/lent_zeros.h"
#include "tensors/out_of_memory.h"
#include "tensors/torch_error.h"
#include "training/metrics/factory.h"
#include "training/metrics/loss_metrics.h"

namespace tutti {
namespace {

// Counts of an evaluation, summed over ranks.
struct Counts {
  double samples = 0;
  double tokens = 0;
  double seconds = 0;
  double stopped = 0;    // ranks
  double too_large = 0;  // ranks
};

void sum_over_ranks(RankServices& services, std::vector<MetricPtr>& metrics, Counts& counts) {
  std::vector<double> all{counts.samples, counts.tokens, counts.seconds, counts.stopped, counts.too_large};
  for (auto& metric : metrics) all.insert(all.end(), metric->sums().begin(), metric->sums().end());
  at::Tensor values = at::zeros({static_cast<int64_t>(all.size())}, at::kDouble);
  std::copy(all.begin(), all.end(), values.data_ptr<double>());
  services.sum_over_ranks(values);
  const double* from = values.const_data_ptr<double>();
  counts = {from[0], from[1], from[2], from[3], from[4]};
  from += 5;
  for (auto& metric : metrics) {
    std::copy_n(from, metric->sums().size(), metric->sums().begin());
    from += metric->sums().size();
  }
}

using Sums = std::vector<std::vector<double>>;

Sums sums_of(const std::vector<MetricPtr>& metrics) {
  Sums sums;
  for (const auto& metric : metrics) sums.push_back(metric->sums());
  return sums;
}

// The split of a batch.
struct Cut {
  int64_t planned = 0;  // samples of a part, by the recipe
  int64_t fits = 0;     // samples that fit into memory; parts are split further
};

void evaluate_part(State& state, Engine& engine, const Batch& part, const Cut& cut,
                   std::vector<MetricPtr>& metrics) {
  for (int64_t begin = 0; begin < part.samples(); begin += cut.fits) {
    const int64_t size = std::min(cut.fits, part.samples() - begin);
    const bool whole = size == part.samples();
    state.batch = whole ? part : part.narrow(begin, size);
    engine.run_event(Event::kEvalBeforeForward);
    state.outputs = state.eval_forward(state.batch);
    engine.run_event(Event::kEvalAfterForward);
    for (auto& metric : metrics) state.update_metric(state.batch, state.outputs, *metric);
  }
}

void evaluate_parts(State& state, Engine& engine, const Batch& batch, const Cut& cut,
                    std::vector<MetricPtr>& metrics) {
  state.batch = batch;
  engine.run_event(Event::kEvalBatchStart);
  const Batch whole = state.batch;
  for (int64_t begin = 0; begin < whole.samples(); begin += cut.planned) {
    const int64_t size = std::min(cut.planned, whole.samples() - begin);
    const bool one = size == whole.samples();
    evaluate_part(state, engine, one ? whole : whole.narrow(begin, size), cut, metrics);
  }
  state.eval_timestamp.to_next_batch(0, 0, 0.0);
  engine.run_event(Event::kEvalBatchEnd);
}

// On this rank alone, which has the whole model. If memory runs out, halves the parts of this and later
// batches; metrics are sums, so other ranks need not know. Returns the error if a single sample is too large.
std::optional<std::string> evaluate_batch(State& state, Engine& engine, const Batch& batch, Cut& cut,
                                          std::vector<MetricPtr>& metrics) {
  const Sums before = sums_of(metrics);
  const Timestamp began = state.eval_timestamp;
  for (;;) {
    const auto failure = state.services->attempt([&] { evaluate_parts(state, engine, batch, cut, metrics); });
    if (!failure) return std::nullopt;
    state.batch = state.outputs = {};
    state.eval_timestamp = began;
    for (std::size_t m = 0; m < metrics.size(); ++m) metrics[m]->sums() = before[m];
    const int64_t largest = std::min({cut.fits, cut.planned, batch.samples()});
    if (largest < 2) return failure;
    cut.fits = (largest + 1) / 2;
  }
}

// Forwards of a batch of `samples`.
int64_t forwards_of(int64_t samples, const Cut& cut) {
  const auto parts = [&](int64_t part) { return part == 0 ? 0 : (part - 1) / cut.fits + 1; };
  return samples / cut.planned * parts(std::min(samples, cut.planned)) + parts(samples % cut.planned);
}

// Evaluates a batch on all ranks together, with the same number of forwards on each. If a rank runs out of
// memory, all repeat the work in smaller parts. `batch`: null if this rank was asked to stop, empty if it has
// no samples. Sets the counts of ranks that stop or fail. Returns the error of this rank, if any.
std::optional<std::string> evaluate_together(State& state, Engine& engine, const Batch* batch,
                                             int64_t largest, Cut& cut, std::vector<MetricPtr>& metrics,
                                             Counts& counts) {
  const Sums before = sums_of(metrics);
  const Timestamp began = state.eval_timestamp;
  for (;;) {
    const auto failure = state.services->attempt([&] {
      state.services->hold_model(true, forwards_of(largest, cut));
      if (batch && batch->samples() > 0) evaluate_parts(state, engine, *batch, cut, metrics);
    });
    state.batch = state.outputs = {};
    const at::Tensor flags = at::zeros({2}, at::kDouble);
    flags[0] = batch ? 0.0 : 1.0;
    flags[1] = failure ? 1.0 : 0.0;
    state.services->free_model();
    state.services->sum_over_ranks(flags);
    counts.stopped = flags[0].item<double>() > 0 ? 1 : 0;
    if (counts.stopped > 0 || flags[1].item<double>() == 0) return std::nullopt;
    state.eval_timestamp = began;
    for (std::size_t m = 0; m < metrics.size(); ++m) metrics[m]->sums() = before[m];
    const int64_t part = std::min({cut.fits, cut.planned, largest});
    if (part < 2) {
      counts.too_large = failure ? 1 : 0;
      return failure.value_or("");
    }
    cut.fits = (part + 1) / 2;
  }
}

void store_results(State& state, const std::vector<MetricPtr>& metrics, const Counts& counts) {
  state.eval_timestamp.sample = static_cast<int64_t>(counts.samples);
  state.eval_timestamp.token = static_cast<int64_t>(counts.tokens);
  state.eval_timestamp.total_wct = counts.seconds;
  for (const auto& metric : metrics)
    state.metric_values[state.dataloader_label + "/" + metric->measured_name()] = metric->compute();
}

}  // namespace

void try_metrics(State& state, const Evaluator& evaluator, const Dataset& data) {
  const at::NoGradGuard no_grad;
  const LentZeros zeros(*state.model);
  const EvaluationMode evaluating(*state.model);
  const auto metrics = evaluator.metrics(*state.model, state.composer);
  const int64_t first = 0;
  const Batch batch = data.get({&first, 1}, {state.seed});
  std::string what = "the model cannot evaluate the first sample: ", way_out;
  try {
    const Outputs outputs = state.eval_forward(batch);
    for (const auto& metric : metrics) {
      what = metric->measured_name() + " cannot measure " +
             (outputs.is_leaf() ? "this model on this data: " : "the outputs of this model: ");
      way_out = metric->name() == ModelLoss::kName ? "; with loss = false the loss is not measured" : "";
      state.update_metric(batch, outputs, *metric);
    }
  } catch (const std::exception& error) {
    if (is_lack_of_memory(error)) throw;
    evaluator.section.fail(what + one_line(error) + way_out);
  }
}

EvalHooks single_rank_hooks(Engine& engine, FetchBatch fetch) {
  EvalHooks hooks;
  hooks.fetch = std::move(fetch);
  hooks.stopwatch = [] { return 0.0; };
  hooks.run_event = [&engine](Event event) { engine.run_event(event); };
  return hooks;
}

std::optional<LoggedMetrics> evaluate(State& state, Engine& engine, const Evaluator& evaluator,
                                      const EvalHooks& hooks) {
  const at::NoGradGuard no_grad;
  const DataScope data(state, evaluator.label, evaluator.data_of(state.topology.rank).get());
  state.eval_timestamp = {};
  state.evaluation_cut = false;
  Model& model = *state.model;
  std::optional<EvaluationMode> evaluating(model);
  auto metrics = evaluator.metrics(model, state.composer);
  const auto begin_batch = [&](int64_t index) {
    for (auto& metric : metrics) metric->begin_batch(index, evaluator.batches);
  };
  begin_batch(0);  // ranks that stop have as many sums
  Cut cut{evaluator.microbatch, evaluator.microbatch};
  Counts counts;
  std::string failure;
  hooks.run_event(Event::kEvalStart);
  RankServices& services = *state.services;
  const bool together = services.evaluates_together();
  if (!together) services.hold_model(true, 0);
  const int64_t largest = largest_part(evaluator.global_batch, state.topology.data_world);
  bool over = false;
  for (int64_t b = 0; b < evaluator.batches && !over; ++b) {
    const auto fetched = hooks.fetch(b);
    const Batch* batch = fetched ? &*fetched : nullptr;
    begin_batch(b);
    if (batch && batch->samples() > 0 && counts.too_large == 0) {
      counts.samples += static_cast<double>(batch->samples());
      counts.tokens += static_cast<double>(model.tokens(*batch));
    }
    std::optional<std::string> error;
    if (together) {
      error = evaluate_together(state, engine, batch, largest, cut, metrics, counts);
      over = error || counts.stopped > 0;
    } else if (!batch) {
      counts.stopped = 1;
      over = true;
    } else if (batch->samples() > 0 && counts.too_large == 0) {
      error = evaluate_batch(state, engine, *batch, cut, metrics);
      counts.too_large = error ? 1 : 0;
    }
    if (error && counts.too_large > 0) failure = reason_of_lack(*error);
  }
  state.batch = state.outputs = {};
  evaluating.reset();
  if (!together) services.free_model();
  counts.seconds = hooks.stopwatch();
  sum_over_ranks(services, metrics, counts);
  state.evaluation_cut = counts.too_large > 0 || counts.stopped > 0;
  if (state.evaluation_cut) hooks.run_event(Event::kEvalEnd);
  if (counts.too_large > 0)
    throw AgreedOutOfMemory(EndKind::kOutOfMemoryInEvaluation,
                            "evaluation '" + evaluator.label + "' after step " +
                                std::to_string(state.timestamp.batch) + ": out of memory on " +
                                std::to_string(static_cast<int>(counts.too_large)) + " of " +
                                std::to_string(state.topology.world) + " ranks with one sample at a time" +
                                (failure.empty() ? "" : ": " + failure));
  if (counts.stopped > 0) return std::nullopt;
  store_results(state, metrics, counts);
  LoggedMetrics values;
  for (const auto& metric : metrics)
    values.emplace_back("metrics/" + evaluator.label + "/" + metric->measured_name(), metric->compute());
  hooks.run_event(Event::kEvalEnd);
  return values;
}

}  // namespace tutti
