#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/rank_actors.h"
#include "recipe/time/timestamp.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"
#include "tensors/digests.h"
#include "training/evaluation/evaluation.h"

namespace tutti {

// The evaluators of a run: says which are due, and evaluates on this rank. Each evaluator has a Loader; sums
// over ranks go through Sync.
class Evaluations {
 public:
  using Labels = std::vector<std::string>;  // of evaluators, in order
  using RunEvent = std::function<void(Context&, Event)>;

  // `run_event`: for events outside an attempt. All references must outlive this object.
  Evaluations(State& state, const std::vector<Evaluator>& evaluators, const RankActors& actors,
              Recorder& recorder, RunEvent run_event);

  const std::vector<Evaluator>& evaluators() const { return evaluators_; }

  // `whole`: the length of training.
  void plan(const Time& whole);

  // `before`: the time before the batch, or before the end of the epoch; the state has the time after.
  Labels due_at_batch_end(const Timestamp& before) const;
  Labels due_at_epoch_end(const Timestamp& before) const;
  // The label, if an evaluator has that label; "": all labels.
  Labels labels_of(const std::string& label) const;
  // Evaluators with an interval that have not measured the final weights.
  Labels due_at_the_end() const;

  // The metrics, by the names in metrics.jsonl; nullopt if the run is asked to stop. Throws AgreedOutOfMemory
  // if one sample is too large for the memory. Ending events run in any case. `standalone`: not a part of
  // training.
  std::optional<LoggedMetrics> run(Context& context, Engine& engine, const Labels& labels, bool standalone);

  double seconds() const { return seconds_; }  // spent in evaluations, on rank 0

 private:
  // For the journal: each batch of this rank, and the metrics of all ranks.
  struct Digests {
    TensorsDigest batch, metrics;
  };

  class Run;

  Labels due(const std::function<bool(const Interval& every)>& fires) const;
  std::optional<LoggedMetrics> run_all(Context& context, Engine& engine, const Labels& labels);
  std::optional<LoggedMetrics> run_one(Context& context, Engine& engine, std::size_t which);
  void digest_metrics(const LoggedMetrics& metrics, std::size_t which);

  State& state_;
  const std::vector<Evaluator>& evaluators_;
  const RankActors& actors_;
  Recorder& recorder_;
  RunEvent run_event_;
  std::vector<Digests> digests_;            // of each evaluator
  std::vector<Interval> every_;             // of each evaluator
  std::map<std::string, int64_t> done_at_;  // steps, by label
  double seconds_ = 0;
};

}  // namespace tutti
