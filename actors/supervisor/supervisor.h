#pragma once

#include <optional>
#include <string>

#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
#include "actors/supervisor/checkpoint_store.h"
#include "actors/supervisor/durable_logs.h"
#include "actors/supervisor/failure_detector.h"
#include "actors/supervisor/publisher.h"
#include "actors/supervisor/run_folder.h"
#include "actors/supervisor/run_start.h"
#include "job/job.h"
#include "runtime/actor/actor.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "runtime/recorder.h"

namespace tutti {

// Starts, watches and ends a rank. Starts the other actors once all ranks agree (RunStart), passes on
// requests to stop, ends the run if another rank fails (FailureDetector), and ends it after the last
// checkpoint.
class Supervisor final : public Actor {
 public:
  struct Place {
    int rank = 0;
    std::string host;
    std::string after_interrupt = {};  // printed after Ctrl-C
  };

  // All references must outlive the Supervisor. `end`: receives the end of the run, unless an error ended it.
  Supervisor(const Job& job, const Place& place, const RankActors& actors, Disk& disk, Log& log,
             Recorder& recorder, EndKind& end);

  void start(Context& context) override;
  void receive(Context& context, Envelope& envelope) override;
  std::optional<TimePoint> idle(Context& context) override;

 private:
  enum class Stage { kOpening, kVerifying, kPreparing, kTraining, kFinished };

  void agreed(Context& context, const std::vector<Statement>& statements);
  void verify_or_prepare(Context& context, Verify next);
  void handle_control(Context& context, int from, const std::string& text);
  void durable(Context& context, Durable part);
  void add_part(Context& context, int rank, Durable part);
  void stop_requested(Context& context);
  void prepare_to_stop(Context& context);
  void look_into_folder(Context& context);
  void fail(Context& context, const FailureDetector::Failure& failure);
  void trained(Context& context, TrainingDone done);
  void throw_if_failed(Context& context);
  void finish_if_ready(Context& context);
  void finish(Context& context, EndKind kind);
  void send_others(Context& context, const std::string& order);
  void send_others_and_wait(Context& context, std::optional<int> except, const std::string& order);

  int rank_, world_;
  RankActors actors_;
  Log& log_;
  Recorder& recorder_;
  EndKind& end_;
  std::string after_interrupt_;
  RunFolder folder_;
  CheckpointStore store_;
  DurableLogs logs_;
  RunStart start_;
  FailureDetector failures_;
  Publisher publisher_;
  Stage stage_ = Stage::kOpening;
  std::optional<TrainingDone> done_;
  std::optional<EndKind> agreed_end_;  // of all ranks, once the last checkpoint is concluded
  bool stop_requested_ = false;
  bool journal_whole_ = true;
};

}  // namespace tutti
