#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/compute/evaluations.h"
#include "actors/compute/train_step.h"
#include "actors/logging/log_queues.h"
#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
#include "io/checkpoint/run_state.h"
#include "job/checkpoint_options.h"
#include "job/task.h"
#include "models/zoo/factory.h"
#include "recipe/setting.h"
#include "runtime/actor/actor.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "runtime/recorder.h"
#include "tensors/digests.h"
#include "training/engine/engine.h"
#include "training/loggers/step_log.h"
#include "training/loggers/trainer_log.h"
#include "training/schedules/learning_rate.h"
#include "training/state.h"

namespace tutti {

// Trains: owns model, optimizer and time. Each BatchReady is one step, run to completion: forward and
// backward over the microbatches, while Sync reduces what is ready; then the verdict of all ranks; then, and
// only then, the commit of everything that lasts (parameters, optimizer, running statistics, time). A step in
// which some rank runs out of memory is void on all, and done again in smaller parts.
class Compute final : public Actor {
 public:
  struct Options {
    Setting recipe;  // resolved
    std::string recipe_text;
    std::string run_dir;
    std::string checkpoints;  // folder
    int rank = 0;
    int world = 1;
    int memory_slot = 0;        // of the meter
    int64_t memory_budget = 0;  // bytes; 0 = none
    uint64_t seed = 0;
    int64_t global_batch = 0;
    int64_t batches_per_epoch = 0;
    int64_t train_samples = 0;
    DatasetPtr train;  // this rank's
    std::vector<Evaluator> evaluators;
    SampleSpec spec;
    ModelFactory make_model;
    uint64_t data_digest = 0;
    StartFrom from;
    SaveTerms save;
    CheckpointNames names;
    StepObserver before_step;
    Engine::Options listeners;
    std::vector<Task> tasks;
  };

  Compute(Options options, const RankActors& cast, Disk& disk, Log& log, Recorder& recorder);
  ~Compute() override;

  void receive(Context& context, Envelope& envelope) override;

 private:
  using Labels = Evaluations::Labels;

  void handle(Context& context, Envelope& envelope);
  Prepared prepare(const Prepare& start);
  void restore(const Prepare& start);
  void take(const RunState& saved, const std::string& folder);
  void plan_times();
  void follow_max_duration();
  void begin(Context& context, const Start& start);
  void start_fit(Context& context);
  void start_logs(Context& context);
  bool goes_on() const;
  void reserve_copies(Context& context);

  void run_event(Context& context, Event event);
  EventAgreement agreement(Context& context);
  void agree(Context& context, const ActedAlgorithms& acted);
  void undo(Context& context, Event begin, Event end);
  void keep_rest(const ActedAlgorithms& acted, const std::vector<double>& left);
  std::vector<double> of_all_ranks(Context& context, double mine) const;

  void step(Context& context, BatchReady& ready);
  void vote(Context& context, Verdict& mine) const;
  void report(Context& context, const Timestamp& before, const Verdict& verdict, double lr);
  void after_step(Context& context, const Timestamp& before, const Verdict& verdict);
  void end_batch(Context& context);
  void end_epoch(Context& context);
  void end_iteration(Context& context);
  void end_step(Context& context);
  bool evaluated(Context& context);
  void complete(Context& context);
  void await_batch(Context& context);
  void send_logged(Context& context);
  void show_rate();
  bool over() const;

  bool goes_on_with_tasks(Context& context, bool& stopped);
  void train_on(Context& context, const Time& duration);
  Labels labels_of(const Task& task) const;
  void predict_alone(Context& context, const Task& task);
  std::optional<LoggedMetrics> evaluate(Context& context, const Labels& labels, bool standalone = false);
  void observe(const LoggedMetrics& metrics);
  void write_text(Context& context);
  void snapshot(Context& context, bool last, bool for_good = false);
  bool saves() const;
  std::vector<CheckpointPiece> own_pieces() const;
  std::vector<CheckpointPiece> saved_pieces() const;
  void wait_for_copy(Context& context);
  void finish(Context& context, bool stopped);
  void give_up(Context& context, const std::string& why);
  bool give_up_at_the_end(Context& context);
  void record(Context& context, const char* what, int64_t detail = 0);
  RunState run_state() const;
  void digest_weights();

  Options options_;
  RankActors cast_;
  Disk& disk_;
  Log& log_;
  Recorder& recorder_;
  TensorsDigest batch_digest_, weights_digest_;

  State state_;
  StepLog logger_;
  TrainerLog trainer_log_;
  LogQueues queues_;
  std::unique_ptr<Engine> engine_;
  LearningRate rate_;
  Time planned_duration_;         // that rate and intervals were made for
  int64_t iteration_length_ = 0;  // epochs; 0 = without end
  std::optional<TrainStep> train_step_;
  Evaluations evaluations_;
  std::optional<Interval> checkpoint_every_;
  Pending<SnapshotCopied> copying_;
  std::string resumed_from_;  // a checkpoint's folder, or ""
  TimePoint began_;           // of this process's training
  TimePoint step_began_;      // when the last step was over; waiting for the batch counts
  double earlier_s_ = 0;      // trained before this start
  int64_t saved_at_ = -1;
  int64_t snapshots_ = 0;  // of this start
  bool told_of_disk_ = false;
  bool began_fit_ = false;
  bool gave_up_ = false;  // a listener ran out of memory
  bool stop_requested_ = false;
  bool stop_agreed_ = false;                // by all ranks
  bool checkpoint_due_ = false;             // after the step in hand
  StepRest rest_;                           // of the step in hand
  std::optional<StepRest> unfinished_;      // whose event an earlier start has begun
  std::optional<std::vector<int>> savers_;  // the ranks whose state is saved; none = all
  bool evaluation_changed_ = false;         // an algorithm has acted in the evaluation in hand
  TasksState tasks_;
  std::string begun_duration_;    // max_duration as FIT_START left it
  std::string changed_duration_;  // and as it was at the checkpoint, if it is another
  double predicting_s_ = 0;       // on rank 0; no part of training
  bool done_ = false;
};

}  // namespace tutti
