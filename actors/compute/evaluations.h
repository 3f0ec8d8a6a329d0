#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/rank_actors.h"
#include "runtime/actor/actor.h"
#include "runtime/recorder.h"
#include "tensors/digests.h"
#include "training/evaluation/evaluation.h"
#include "training/time/timestamp.h"

namespace tutti {

// The evaluators of a run: whose time has come, and their evaluations on this rank. Batches come from each
// one's loader, sums go through Sync.
class Evaluations {
 public:
  using Labels = std::vector<std::string>;  // of evaluators, in their order

  using RunEvent = std::function<void(Context&, Event)>;

  // `run_event` runs the events that are no part of an attempt. All must outlive it.
  Evaluations(State& state, const std::vector<Evaluator>& evaluators, const RankActors& actors,
              Recorder& recorder, RunEvent run_event);

  const std::vector<Evaluator>& evaluators() const { return evaluators_; }

  // `recipe` resolved; `whole`: how long the training is to be.
  void plan(const Setting& recipe, const Time& whole);

  // `before` is the timestamp before the batch, or before the epoch's end; the state has the one after it.
  Labels due_at_batch_end(const Timestamp& before) const;
  Labels due_at_epoch_end(const Timestamp& before) const;
  // The evaluator of that label; "": all.
  Labels labels_of(const std::string& label) const;
  // Of a run that is over: those that have not seen its last weights.
  Labels due_at_the_end() const;

  // What they found, by the names in metrics.jsonl; nothing where the run was asked to stop. Throws
  // AgreedOutOfMemory where one sample is too large for the memory. Either way all ending events are run.
  // `standalone`: not as a part of training.
  std::optional<LoggedMetrics> run(Context& context, Engine& engine, const Labels& labels, bool standalone);

  double seconds() const { return seconds_; }  // that they took so far, on rank 0

 private:
  // For the journal: every batch of this rank, and what came of those of all ranks.
  struct Digests {
    TensorsDigest batch, metrics;
  };

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
