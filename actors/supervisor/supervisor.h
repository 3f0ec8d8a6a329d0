#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/messages.h"
#include "actors/messages/rank_actors.h"
#include "actors/supervisor/checkpoint_store.h"
#include "actors/supervisor/failure_detector.h"
#include "actors/supervisor/run_folder.h"
#include "actors/supervisor/run_start.h"
#include "job/job.h"
#include "runtime/actor/actor.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "runtime/recorder.h"

namespace tutti {

// Publishes a checkpoint once every rank's part is durable. On rank 0.
class Publisher {
 public:
  // All references must outlive the publisher.
  Publisher(const Job& job, CheckpointStore& store, ActorId checkpointer, Log& log, Recorder& recorder);

  // A checkpoint has a part of each of `world` ranks.
  void join(int world) { world_ = world; }

  struct Conclusion {
    bool published = false;
    bool last = false;  // of the run
  };
  // Adds a rank's part. The last part concludes the checkpoint, which is published, or discarded with a
  // warning in the log, and the Checkpointer gets Concluded.
  std::optional<Conclusion> add(Context& context, int rank, Durable part);

  int64_t concluded() const { return concluded_; }  // checkpoints of this attempt

 private:
  using Parts = std::map<int, Durable>;  // by rank
  std::string publish(const std::string& name, const std::string& unfinished, Parts& parts);

  const Job& job_;
  CheckpointStore& store_;
  ActorId checkpointer_;
  Log& log_;
  Recorder& recorder_;
  int world_ = 0;
  std::map<std::string, Parts> unpublished_;  // by checkpoint
  int64_t concluded_ = 0;
  int failed_ = 0;
};

// Writes a rank's durable logs to the disk before the rank's part of a checkpoint counts. Only the time of
// publishing depends on these logs, so the waits are not recorded.
class DurableLogs {
 public:
  // The wait for a log that was late the last time; no wait if the log has not answered yet.
  static constexpr Nanoseconds kLateTimeout = std::chrono::milliseconds(50);

  DurableLogs(const std::vector<LogActor>& logs, Log& log);

  // Returns once the records of the checkpoint's steps are on the disk, or after LogActor::sync_timeout. A
  // warning names a late log, once until the log is in time.
  void sync(Context& context, const std::string& checkpoint);

 private:
  struct DurableLog {
    LogActor to;
    Pending<LogSynced> syncing = {};
    TimePoint until{};  // of `syncing`
    bool late = false;
  };

  static bool answers_in_time(Context& context, DurableLog& log);

  std::vector<DurableLog> logs_;
  Log& log_;
};

// Starts, watches and ends a rank. Passes a Join on, starts the other actors once all ranks agree (RunStart),
// passes on requests to stop, and ends the run after the last checkpoint, or if another rank fails
// (FailureDetector).
class Supervisor final : public Actor {
 public:
  struct Place {
    std::string host;
    std::string after_interrupt = {};  // printed after Ctrl-C
    Uploads* uploads = nullptr;        // of checkpoints; null: none
  };

  // All references must outlive the Supervisor. `end`: receives the end of a run that no error ended.
  Supervisor(const Job& job, const Place& place, const RankActors& actors, Disk& disk, Log& log,
             Recorder& recorder, EndKind& end);

  void receive(Context& context, Envelope& envelope) override;
  std::optional<TimePoint> idle(Context& context) override;

 private:
  enum class Stage { kJoining, kOpening, kVerifying, kPreparing, kBeginning, kTraining, kFinished };

  struct Ending {
    std::optional<TrainingDone> done;
    std::optional<EndKind> agreed;  // of all ranks, once the last checkpoint is concluded
  };

  void join(Context& context, Join& message);
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

  RankTopology place_;
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
  Stage stage_ = Stage::kJoining;
  Ending ending_;
  bool stop_requested_ = false;
  bool journal_whole_ = true;
};

}  // namespace tutti
