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
#include "recipe/setting.h"
#include "runtime/actor/actor.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "runtime/recorder.h"

namespace tutti {

// How a run ended, for the exit code: 0 well, 3 when its last checkpoint could not be written.
struct RunOutcome {
  int exit_code = 0;
  bool stopped = false;  // on request
  bool refused = false;  // all ranks agreed that they cannot start
  int failed_checkpoints = 0;
};

// A rank's life. It starts the others once all ranks agree that they can, passes on orders to stop, watches
// the other ranks' heartbeats (rank 0 watches all, the others watch rank 0), publishes a checkpoint once
// every rank's part is durable (rank 0), and ends the run.
class Supervisor final : public Actor {
 public:
  struct Options {
    int rank = 0;
    int world = 1;
    std::string host;
    std::string run_dir;
    CheckpointStore::Options store;
    StartFrom from;
    std::string recipe_text;  // as resolved; rank 0 writes it to run_dir/recipe.toml
    std::string nonce;        // of this start, the same on all ranks
    int keep_journals = -1;   // of starts; -1 = all
    Nanoseconds hang_timeout = std::chrono::seconds(60);
  };

  Supervisor(Options options, const RankActors& actors, Disk& disk, Log& log, Recorder& recorder,
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
  void fail(Context& context, int rank, const std::string& why);
  void tell_others(Context& context, int except, const std::string& news);
  void tell_all(Context& context, const std::string& news);
  void failed(Context& context, const TrainingDone& done);
  [[noreturn]] void fail_all(Context& context, const std::string& why);
  void end_badly(Context& context);
  void finish(Context& context, int exit_code);
  void finish_as_told(Context& context);

  Options options_;
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
  int64_t concluded_ = 0;         // checkpoints of this start
  bool trained_ = false;          // Compute is done
  std::optional<int> exit_code_;  // the exit code, once the last checkpoint is concluded
  std::string failure_;           // why training cannot go on, or ""
  int64_t last_to_see_ = 0;       // as many a failed run's end waits for
  bool stop_requested_ = false;
};

}  // namespace tutti
