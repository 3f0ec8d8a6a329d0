#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/control_text.h"
#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
#include "actors/supervisor/checkpoint_store.h"
#include "actors/supervisor/durable_logs.h"
#include "actors/supervisor/run_folder.h"
#include "job/job.h"
#include "runtime/actor/actor.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "runtime/recorder.h"

namespace tutti {

// How a run ended that no error ended.
struct RunOutcome {
  EndKind end = EndKind::kDone;
  int failed_checkpoints = 0;
};

// A rank's life. It starts the others once all ranks agree that they can, passes on orders to stop, watches
// the other ranks' heartbeats (rank 0 watches all, the others watch rank 0), publishes a checkpoint once
// every rank's part is durable (rank 0), and ends the run.
class Supervisor final : public Actor {
 public:
  struct Place {
    int rank = 0;
    std::string host;
  };

  // All references must outlive it.
  Supervisor(const Job& job, Place place, const RankActors& actors, Disk& disk, Log& log, Recorder& recorder,
             RunOutcome& outcome);

  void start(Context& context) override;
  void receive(Context& context, Envelope& envelope) override;
  std::optional<TimePoint> idle(Context& context) override;

 private:
  enum class Stage { kOpening, kPreparing, kTraining, kFinished };
  struct Unpublished {
    std::map<int, Durable> parts;  // by rank
  };

  // Start-up: rank 0 opens the run folder and says which checkpoint to go on from; every rank prepares to;
  // what all then say decides.
  void say(Context& context, const Statement& statement);
  Statement open_run_folder(Context& context);
  CheckpointStore::Choice choose();
  std::string begin_text() const;
  void agreed(Context& context, const std::vector<Statement>& statements);
  void opened(Context& context, const ControlText& opening);
  void prepared(Context& context, Prepared ready);
  void begin(Context& context);
  void require_agreement(const std::vector<Statement>& statements) const;

  void control(Context& context, int from, const std::string& text);
  void durable(Context& context, int rank, Durable part);
  void conclude(Context& context, const std::string& name);
  std::string publish(const std::string& name, Unpublished& whole);  // what went wrong, or ""
  void stop_requested(Context& context);
  void prepare_to_stop(Context& context);
  void watch(Context& context);
  void forgive_own_absence(Context& context);
  void watch_all_wait(Context& context);
  void mention(Context& context, int rank);
  void fail(Context& context, EndKind kind, int rank, const std::string& why);
  void tell_others(Context& context, int except, const std::string& news);
  void tell_all(Context& context, const std::string& news);
  void trained(Context& context, TrainingDone done);
  [[noreturn]] void fail_all(Context& context, const OperatingError& why);
  void end_if_failed(Context& context);
  void finish(Context& context, EndKind kind);
  void finish_as_told(Context& context);

  const Job& job_;
  Place place_;
  RankActors actors_;
  Log& log_;
  Recorder& recorder_;
  RunOutcome& outcome_;
  RunFolder folder_;
  CheckpointStore store_;
  DurableLogs logs_;
  Stage stage_ = Stage::kOpening;
  Prepare start_;        // what Compute was told to start from
  std::string trouble_;  // why this rank cannot start, or ""
  Prepared prepared_;
  std::map<int, Heard::Peer> peers_;  // and, once heard, rank 0 itself
  std::map<int, TimePoint> next_mention_;
  TimePoint looked_;      // at the peers
  std::string all_wait_;  // what each rank did last, while every one of them waits for the others
  TimePoint all_wait_since_;
  std::map<std::string, Unpublished> unpublished_;
  int64_t concluded_ = 0;  // checkpoints of this start
  std::optional<TrainingDone> done_;
  std::optional<EndKind> exit_code_;  // once the last checkpoint is concluded
  bool stop_requested_ = false;
};

}  // namespace tutti
