#include "actors/compute/evaluations.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>

#include "actors/messages/messages.h"
#include "io/journal/journal_steps.h"
#include "runtime/probe/probe.h"
#include "tensors/memory/out_of_memory.h"

namespace tutti {

Evaluations::Evaluations(State& state, const std::vector<Evaluator>& evaluators, const RankActors& actors,
                         Recorder& recorder, RunEvent run_event)
    : state_(state),
      evaluators_(evaluators),
      actors_(actors),
      recorder_(recorder),
      run_event_(std::move(run_event)) {
  const auto digest = [&](std::string_view what, const std::string& label) {
    return TensorsDigest(std::string(what) + label, recorder, TensorsDigest::kWhole);
  };
  for (const auto& evaluator : evaluators)
    digests_.push_back(
        {digest(kEvaluationBatch, evaluator.label), digest(kEvaluationMetrics, evaluator.label)});
}

void Evaluations::plan(const Time& whole) {
  every_.clear();
  for (const auto& evaluator : evaluators_)
    every_.emplace_back(evaluator.interval, whole, state_.dataloader_len);
}

Evaluations::Labels Evaluations::due(const std::function<bool(const Interval& every)>& fires) const {
  Labels labels;
  for (std::size_t e = 0; e < every_.size(); ++e)
    if (fires(every_[e])) labels.push_back(evaluators_[e].label);
  return labels;
}

Evaluations::Labels Evaluations::due_at_batch_end(const Timestamp& before) const {
  return due([&](const Interval& every) { return every.at_batch_end(before, state_.timestamp); });
}

Evaluations::Labels Evaluations::due_at_epoch_end(const Timestamp& before) const {
  return due([&](const Interval& every) { return every.at_epoch_end(before, state_.timestamp); });
}

Evaluations::Labels Evaluations::labels_of(const std::string& label) const {
  Labels labels;
  for (const auto& evaluator : evaluators_)
    if (label.empty() || label == evaluator.label) labels.push_back(evaluator.label);
  return labels;
}

Evaluations::Labels Evaluations::due_at_the_end() const {
  Labels labels = due([](const Interval& every) { return every.fires(); });
  const auto erased = std::erase_if(labels, [&](const std::string& label) {
    const auto done = done_at_.find(label);
    return done != done_at_.end() && done->second == state_.timestamp.batch;
  });
  if (erased > 0) TUTTI_PROBE("evaluation: the evaluation at the end was done after the last step");
  return labels;
}

std::optional<LoggedMetrics> Evaluations::run(Context& context, Engine& engine, const Labels& labels,
                                              bool standalone) {
  const Event begin = standalone ? Event::kEvalStandaloneStart : Event::kEvalBeforeAll;
  const Event end = standalone ? Event::kEvalStandaloneEnd : Event::kEvalAfterAll;
  state_.evaluation_cut = false;
  run_event_(context, begin);
  std::optional<LoggedMetrics> metrics;
  try {
    metrics = run_all(context, engine, labels);
  } catch (const AgreedOutOfMemory&) {
    run_event_(context, end);
    throw;
  }
  run_event_(context, end);
  if (!metrics) return metrics;
  for (const auto& label : labels) done_at_[label] = state_.timestamp.batch;
  return metrics;
}

std::optional<LoggedMetrics> Evaluations::run_all(Context& context, Engine& engine, const Labels& labels) {
  LoggedMetrics all;
  for (std::size_t e = 0; e < evaluators_.size(); ++e) {
    if (std::ranges::count(labels, evaluators_[e].label) == 0) continue;
    const auto metrics = run_one(context, engine, e);
    if (!metrics) return std::nullopt;
    all.insert(all.end(), metrics->begin(), metrics->end());
  }
  return all;
}

// Loads the batches of an evaluator, each while the one before is evaluated.
class Evaluations::Run final : public EvaluationRun {
 public:
  Run(Evaluations& of, Context& context, std::size_t which) : of_(of), context_(context), which_(which) {
    load(0);
  }

  std::optional<Batch> fetch(int64_t index) override {
    const int64_t step = of_.state_.timestamp.batch;
    of_.recorder_.record({context_.now(), TraceKind::kEvaluation, step, index});
    BatchReady ready = next_.wait();
    if (ready.stopped) return std::nullopt;
    if (of_.recorder_.digests()) of_.digests_[which_].batch.record(step, ready.batch.leaves());
    if (index + 1 < of_.evaluators_[which_].batches) load(index + 1);
    return arrived(ready.copy);
  }
  double seconds() override {
    if (of_.state_.topology.rank != 0) return 0;
    return of_.recorder_.input(RecordedInput::kEvaluationSeconds, tutti::seconds(context_.now() - began_));
  }
  void run_event(Engine&, Event event) override { of_.run_event_(context_, event); }

 private:
  void load(int64_t index) {
    next_ = context_.request<BatchReady>(of_.actors_.eval_loaders[which_], LoadBatch{{0, index}});
  }

  Evaluations& of_;
  Context& context_;
  const std::size_t which_;
  const TimePoint began_ = context_.now();
  Pending<BatchReady> next_;
};

std::optional<LoggedMetrics> Evaluations::run_one(Context& context, Engine& engine, std::size_t which) {
  Run run(*this, context, which);
  auto metrics = evaluate(state_, engine, evaluators_[which], run);
  seconds_ += state_.eval_timestamp.total_wct;
  if (metrics && recorder_.digests()) digest_metrics(*metrics, which);
  return metrics;
}

void Evaluations::digest_metrics(const LoggedMetrics& metrics, std::size_t which) {
  const std::size_t before = std::string("metrics/" + evaluators_[which].label + "/").size();
  TensorsDigest::Named values;
  for (const auto& [name, value] : metrics)
    values.emplace_back(name.substr(before), at::scalar_tensor(value, at::kDouble));
  digests_[which].metrics.record(state_.timestamp.batch, values);
}

}  // namespace tutti
