#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/heartbeat.h"
#include "actors/messages/verdict.h"
#include "collectives/agreement.h"
#include "io/checkpoint/checkpoint.h"
#include "runtime/error.h"
#include "tensors/digests.h"
#include "tensors/tree.h"
#include "training/loggers/logger_destination.h"

// Every message that passes between the actors of a rank. "asked" means that the sender waits for the reply
// named beside it. Reserved messages (credits, reports to the Supervisor) never block their sender.
//
//   Supervisor   -- Prepare, Start, StopRequested, Stop --> the others
//   Loader       -- BatchReady --> Compute -- Credit --> Loader
//   Compute      -- AllocateBuckets, ReduceBucket, FinishStep, SumDoubles --> Sync -- replies --> Compute
//   Compute      -- ReserveCopies, Snapshot --> Checkpointer -- CopiesReserved, SnapshotCopied --> Compute
//   Compute      -- LogFrom, Logged --> LogWriter -- LogsTaken --> Compute
//   Compute      -- TrainingDone --> Supervisor
//   Checkpointer -- Durable --> Supervisor -- Concluded --> Checkpointer
//   Supervisor   -- SyncLog --> LogWriter -- LogSynced --> Supervisor
//   Supervisor   -- Agree, SendControl --> Sync -- Agreed, Heard, ControlReceived --> Supervisor
//   (of this rank and, through Sync, of others)
namespace tutti {

// Where training stands in the data: the next global batch to train on.
struct DataPosition {
  int64_t epoch = 0;
  int64_t batch = 0;  // within the epoch
};

// ---- the Supervisor's orders

// To Compute, which answers with Prepared: build the model, restore the checkpoint.
struct Prepare {
  static constexpr const char* kName = "Prepare";
  std::string checkpoint;  // folder to start from, or ""
  bool own = false;        // it is of this run, which goes on with all of it
};
struct Prepared {
  static constexpr const char* kName = "Prepared";
  static constexpr bool kReserved = true;
  std::string error;  // a user's error, or ""
  DataPosition position;
  int64_t step = 0;
};
// To Loader and Compute: training begins.
struct Start {
  static constexpr const char* kName = "Start";
  static constexpr bool kReserved = true;
  DataPosition position;
  std::string nonce;  // of this start; names unfinished checkpoint folders
};
// To Compute: finish the step, checkpoint, and end.
struct StopRequested {
  static constexpr const char* kName = "StopRequested";
  static constexpr bool kReserved = true;
};
// To everybody: end, after what was sent before.
struct Stop {
  static constexpr const char* kName = "Stop";
};

// ---- data

struct Credit {
  static constexpr const char* kName = "Credit";
  static constexpr bool kReserved = true;
  int count = 1;
};
struct BatchReady {
  static constexpr const char* kName = "BatchReady";
  DataPosition position;
  int64_t global_samples = 0;  // of the batch, all ranks together
  bool last_of_epoch = false;
  Batch batch;           // this rank's part; empty tensors of the right shape when it has none
  bool stopped = false;  // there is none: the run is asked to stop
};
// To a Loader, asked -> BatchReady: one batch by position, for evaluation. Once it was told StopRequested it
// gives none.
struct LoadBatch {
  static constexpr const char* kName = "LoadBatch";
  DataPosition position;
};

// ---- collectives

// Asked -> BucketMemory: flat uint8 tensors in memory that the group reduces without copying. Every rank,
// same sizes.
struct AllocateBuckets {
  static constexpr const char* kName = "AllocateBuckets";
  std::vector<int64_t> bytes;
};
struct BucketMemory {
  static constexpr const char* kName = "BucketMemory";
  std::vector<at::Tensor> buckets;
};
// The collectives of every pass from here on, in order: the buckets, then the statistics (when there are
// any), then the verdict, which has the same length throughout the run. A step has one pass, or more where a
// closure asks for them.
struct SetPlan {
  static constexpr const char* kName = "SetPlan";
  std::vector<at::Tensor> buckets;             // flat views, in the order in which backward fills them
  int64_t statistics = 0;                      // floats a rank gathers
  std::vector<std::vector<DigestPart>> parts;  // of each bucket, by name
};
// Bucket `index` of step `step` is full.
struct ReduceBucket {
  static constexpr const char* kName = "ReduceBucket";
  int index = 0;
  int64_t step = 0;
};
// Asked -> StepFinished: this rank has nothing more to add to the pass.
struct FinishStep {
  static constexpr const char* kName = "FinishStep";
  int64_t step = 0;
  Verdict verdict;
  at::Tensor statistics;  // [SetPlan::statistics] float32, or undefined
};
struct StepFinished {
  static constexpr const char* kName = "StepFinished";
  Verdict verdict;        // of all ranks
  at::Tensor statistics;  // [world, SetPlan::statistics]
};
// Asked -> Summed: an all-reduce of its own, outside a step (metrics of an evaluation). float64.
struct SumDoubles {
  static constexpr const char* kName = "SumDoubles";
  at::Tensor values;
};
struct Summed {
  static constexpr const char* kName = "Summed";
  at::Tensor values;
};

// ---- between Supervisors, carried by Sync

// Every Supervisor makes a statement and hears those of all, by rank.
struct Agree {
  static constexpr const char* kName = "Agree";
  Statement statement;
};
struct Agreed {
  static constexpr const char* kName = "Agreed";
  static constexpr bool kReserved = true;
  std::vector<Statement> statements;
};
// Asked -> Noted: the newest heartbeats of other ranks. The next ones wait for the answer, so that they never
// pile up before a Supervisor that is busy.
struct Heard {
  static constexpr const char* kName = "Heard";
  static constexpr bool kIncidental = true;
  struct Peer {
    TimePoint heard;
    Heartbeat last;
  };
  std::map<int, Peer> peers;  // by rank
};
struct Noted {
  static constexpr const char* kName = "Noted";
};

// Asked -> ControlSent by one that is about to end the run.
struct SendControl {
  static constexpr const char* kName = "SendControl";
  int to = 0;
  std::string text;
};
struct ControlSent {
  static constexpr const char* kName = "ControlSent";
};
struct ControlReceived {
  static constexpr const char* kName = "ControlReceived";
  static constexpr bool kReserved = true;
  ControlReceived(int rank, std::string bytes)
      : from(rank), text(std::move(bytes)), label_("ControlReceived from rank " + std::to_string(rank)) {}
  std::string_view label() const { return label_; }  // ranks' words arrive in any order

  int from;
  std::string text;

 private:
  std::string label_;
};

// ---- checkpoints

// Asked -> CopiesReserved: from here on there is memory for the copies of such pieces.
struct ReserveCopies {
  static constexpr const char* kName = "ReserveCopies";
  std::vector<CheckpointPiece> pieces;
};
struct CopiesReserved {
  static constexpr const char* kName = "CopiesReserved";
  int64_t bytes = 0;
};
// Asked -> SnapshotCopied: the reply comes once the tensors are copied, before they are written. They are
// copied when the checkpoint before is out of the way.
struct Snapshot {
  static constexpr const char* kName = "Snapshot";
  std::string name;                     // "ep1-ba15"
  std::vector<CheckpointPiece> pieces;  // this rank's; tensors alias the live ones
  std::string state;                    // JSON
  bool last = false;                    // of the run
  bool for_good = false;                // nothing will be changed any more: there need be no copy
};
struct SnapshotCopied {
  static constexpr const char* kName = "SnapshotCopied";
};
struct Durable {
  static constexpr const char* kName = "Durable";
  static constexpr bool kReserved = true;
  std::string name;
  std::string error;  // what went wrong, or ""
  RankFile file;
  std::string state;
  bool last = false;
};

// To rank 0's Checkpointer: the checkpoint that it wrote last is published, or has failed.
struct Concluded {
  static constexpr const char* kName = "Concluded";
  static constexpr bool kReserved = true;
};

// ---- logs

// To a LogWriter, before all else.
struct LogFrom {
  static constexpr const char* kName = "LogFrom";
  LogStart start;
};
// What was logged up to here, in its order. Every so many are asked -> LogsTaken, so that no more are under
// way to a LogWriter than its mailbox holds (LogQueues).
struct Logged {
  static constexpr const char* kName = "Logged";
  LogEntries entries;
};
struct LogsTaken {
  static constexpr const char* kName = "LogsTaken";
};
// Asked -> LogSynced: what was logged so far is on the disk, or cannot be written. A checkpoint is published
// after the records of its steps, so that a run which resumes from it finds them, unless that takes too long
// (DurableLogs).
struct SyncLog {
  static constexpr const char* kName = "SyncLog";
};
struct LogSynced {
  static constexpr const char* kName = "LogSynced";
};

// ---- the end

struct TrainingDone {
  static constexpr const char* kName = "TrainingDone";
  static constexpr bool kReserved = true;
  bool stopped = false;                        // on request, before max_duration
  bool checkpoint_follows = false;             // the last one is on its way
  std::optional<OperatingError> failure = {};  // why training cannot continue, known to all ranks alike
  int64_t checkpoints = 0;  // with a failure: of this start, the last of which may be on its way
  bool alone = false;       // with a failure: known to this rank alone
};

}  // namespace tutti
