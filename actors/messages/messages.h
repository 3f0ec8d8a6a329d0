#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/heartbeat.h"
#include "actors/messages/plan_entry.h"
#include "collectives/agreement.h"
#include "collectives/mesh.h"
#include "data/transforms/transform.h"
#include "io/checkpoint/checkpoint.h"
#include "runtime/error.h"
#include "runtime/process/thread_time.h"
#include "tensors/device.h"
#include "tensors/rank_topology.h"
#include "tensors/tree.h"
#include "training/loggers/logger_destination.h"

// The messages between the actors of a rank. "Asked -> X": the sender waits for the reply X. Reserved
// messages (credits, reports to the Supervisor) never block their sender.
//
//   (outside)    -- Join --> Supervisor -- Join --> Sync, the Loaders, Compute, Checkpointer
//   Supervisor   -- Verify, Prepare, Start, StopRequested, Stop --> the others
//   Loader       -- BatchReady --> Compute -- AddTransforms, Credit --> Loader
//   Compute      -- AllocateMemory, SetPlan, RunEntry, AwaitEntry, FinishStep, SumDoubles --> Sync
//   Sync         -- replies --> Compute
//   Compute      -- ReserveCopies, Snapshot --> Checkpointer -- CopiesReserved, SnapshotCopied --> Compute
//   Compute      -- LogFrom, Logged --> LogWriter
//   Compute      -- TrainingDone --> Supervisor
//   Checkpointer -- Durable --> Supervisor -- Concluded --> Checkpointer
//   Supervisor   -- SyncLog, FinishLog --> LogWriter -- LogSynced --> Supervisor
//   Supervisor   -- Agree, SendControl --> Sync -- Agreed, Heartbeats, ControlReceived --> Supervisor
//   (of this rank and, through Sync, of others)
namespace tutti {

// The next global batch to train on.
struct DataPosition {
  int64_t epoch = 0;
  int64_t batch = 0;  // within the epoch
};

// ---- who takes part

// The first message of every actor but LogWriters. The receiver builds anew whatever depends on the ranks
// that take part; constructors have all other parts.
struct Join {
  static constexpr const char* kName = "Join";
  static constexpr bool kReserved = true;
  int64_t epoch = 0;  // counts the Joins of an attempt
  RankTopology topology = {};
  Groups groups = {};  // for Sync; may not be ready yet (Group::ready)
};

// ---- from the Supervisor

// To Compute: hash this rank's part of the checkpoint's files, reply with Verified.
struct Verify {
  static constexpr const char* kName = "Verify";
  std::string checkpoint;  // folder
};
// A rank's view of a checkpoint; kHidden if rank 0 sees the checkpoint and this rank does not.
enum class FilesFound : uint8_t { kGood, kDamaged, kHidden };
struct Verified {
  static constexpr const char* kName = "Verified";
  static constexpr bool kReserved = true;
  FilesFound files = FilesFound::kGood;
  std::string problem;
};
// To Compute: build the model, restore the checkpoint, reply with Prepared.
struct Prepare {
  static constexpr const char* kName = "Prepare";
  std::string checkpoint;  // folder to start from, or ""
  bool own = false;        // the checkpoint is of this run, and restored as a whole
};
struct Prepared {
  static constexpr const char* kName = "Prepared";
  static constexpr bool kReserved = true;
  std::string error;  // a user's error, or ""
  DataPosition position;
  int64_t step = 0;
  bool lacks_memory = false;  // the error
};
// To Loader and Compute: training begins.
struct Start {
  static constexpr const char* kName = "Start";
  static constexpr bool kReserved = true;
  DataPosition position;
  std::string nonce;  // of this attempt; part of the names of unfinished checkpoint folders
};
// To Compute: finish the step, checkpoint, and end.
struct StopRequested {
  static constexpr const char* kName = "StopRequested";
  static constexpr bool kReserved = true;
};
// To all actors but LogWriters: end, after all earlier messages.
struct Stop {
  static constexpr const char* kName = "Stop";
};

// ---- data

struct Credit {
  static constexpr const char* kName = "Credit";
  static constexpr bool kReserved = true;
  int count = 1;
};
// To the Loader, before the first Credit: transforms that algorithms added to the training data.
struct AddTransforms {
  static constexpr const char* kName = "AddTransforms";
  static constexpr bool kReserved = true;
  Transforms added;
};
struct BatchReady {
  static constexpr const char* kName = "BatchReady";
  DataPosition position;
  int64_t global_samples = 0;  // of the batch, all ranks together
  int64_t first_sample = 0;    // place of this rank's first sample in the global batch
  bool last_of_epoch = false;
  Batch batch;           // this rank's part; empty tensors of the right shape if the rank has no samples
  BatchCopy copy = {};   // of the batch, on the rank's device
  ThreadTime took = {};  // to read it, of all threads together
  bool stopped = false;  // no batch: the run was asked to stop
};
// To a Loader, asked -> BatchReady: one batch by position, for evaluation; none after StopRequested.
struct LoadBatch {
  static constexpr const char* kName = "LoadBatch";
  DataPosition position;
};

// ---- collectives

// Asked -> MemoryAllocated: flat uint8 tensors in memory that a group reduces and gathers without copying.
// Collective over the group, with the same sizes on all ranks. The sender's rank counts as waiting.
struct AllocateMemory {
  static constexpr const char* kName = "AllocateMemory";
  GroupRole group = GroupRole::kWorld;
  std::vector<int64_t> bytes;
};
struct MemoryAllocated {
  static constexpr const char* kName = "MemoryAllocated";
  std::vector<at::Tensor> memory;
};
// The collectives of every later pass. A step has one pass, or more with closures. The entries of a group run
// in this order, on each rank of the group; groups do not wait for each other, but on a device (PassPlace).
struct SetPlan {
  static constexpr const char* kName = "SetPlan";
  std::vector<PlanEntry> entries;
};
// This rank's input of an entry is ready, or, on a device, its work is launched.
struct RunEntry {
  static constexpr const char* kName = "RunEntry";
  int index = 0;
  int64_t step = 0;
  at::Tensor whole = {};   // in this pass, instead of PlanEntry::whole
  StreamOrder ready = {};  // of what the entry reads and writes
};
// Asked -> EntryDone, when an entry that runs in this pass is done. The sender's rank counts as waiting.
struct AwaitEntry {
  static constexpr const char* kName = "AwaitEntry";
  int index = 0;
};
struct EntryDone {
  static constexpr const char* kName = "EntryDone";
  bool finite = true;  // Work::finite
  StreamOrder done = {};
};
// Asked -> PassDone, when all entries are done. Entries that are not ready run with the present contents of
// their tensors. A gather without a `whole` serves the other ranks.
struct FinishStep {
  static constexpr const char* kName = "FinishStep";
  int64_t step = 0;
  StreamOrder ready = {};  // of the tensors of entries that are not ready
};
struct PassDone {
  static constexpr const char* kName = "PassDone";
  bool finite = true;  // the sums of the pass (Work::finite)
  StreamOrder done = {};
};
// Asked -> Summed: an all-reduce beside the plan, of float64 numbers (an evaluation's metrics), or of a model
// that uses all ranks, in any dtype.
struct SumDoubles {
  static constexpr const char* kName = "SumDoubles";
  at::Tensor values;  // of the host
  GroupRole group = GroupRole::kWorld;
};
struct Summed {
  static constexpr const char* kName = "Summed";
  at::Tensor values;
};

// ---- between Supervisors, carried by Sync

// To Sync: one round of an agreement. Agreed has the statements of all ranks, by rank.
struct Agree {
  static constexpr const char* kName = "Agree";
  Statement statement;
};
struct Agreed {
  static constexpr const char* kName = "Agreed";
  static constexpr bool kReserved = true;
  std::vector<Statement> statements;
};
// Asked -> Noted: the newest heartbeats, by rank. Later heartbeats wait for the reply, so that a busy
// Supervisor gets one message, not many.
struct Heartbeats {
  static constexpr const char* kName = "Heartbeats";
  static constexpr bool kIncidental = true;
  struct Peer {
    TimePoint received;
    Heartbeat last;
  };
  std::map<int, Peer> peers;
};
struct Noted {
  static constexpr const char* kName = "Noted";
};

// Asked -> ControlSent if the sender is about to end the run.
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
  std::string_view label() const { return label_; }  // with the rank: packets of ranks arrive in any order

  int from;
  std::string text;

 private:
  std::string label_;
};

// ---- checkpoints

// Asked -> CopiesReserved: allocate memory for copies of these pieces.
struct ReserveCopies {
  static constexpr const char* kName = "ReserveCopies";
  std::vector<CheckpointPiece> pieces;
};
struct CopiesReserved {
  static constexpr const char* kName = "CopiesReserved";
  int64_t bytes = 0;
};
// Asked -> SnapshotCopied, once the tensors are copied and before the write. The copy begins after the
// previous checkpoint is concluded.
struct Snapshot {
  static constexpr const char* kName = "Snapshot";
  std::string name;                     // "ep1-ba15"
  std::vector<CheckpointPiece> pieces;  // this rank's; tensors alias the live ones
  std::string state;                    // JSON
  bool last = false;                    // of the run
  bool for_good = false;                // the tensors will not change any more: no copy is needed
  StreamOrder ready = {};               // of the tensors
};
// The pieces may be changed: at once, or by work of a device that waits for `copied`.
struct SnapshotCopied {
  static constexpr const char* kName = "SnapshotCopied";
  StreamOrder copied = {};
};
struct Durable {
  static constexpr const char* kName = "Durable";
  static constexpr bool kReserved = true;
  std::string name;
  std::string error;  // or ""
  RankFile file;
  std::string state;
  bool last = false;
};

// To rank 0's Checkpointer: the last checkpoint is published, or has failed.
struct Concluded {
  static constexpr const char* kName = "Concluded";
  static constexpr bool kReserved = true;
};

// ---- logs: no result depends on them, so they are not recorded

// To a LogWriter, as the first message.
struct LogFrom {
  static constexpr const char* kName = "LogFrom";
  static constexpr bool kIncidental = true;
  LogStart start;
};
// Log entries in order.
struct Logged {
  static constexpr const char* kName = "Logged";
  static constexpr bool kIncidental = true;
  LogEntries entries;
  int64_t bytes = 0;
  std::shared_ptr<std::atomic<int64_t>> waiting;  // in the queue; less `bytes` once the records are written
};
// Asked -> LogSynced: all earlier entries are on the disk, or cannot be written. A checkpoint is published
// after the records of its steps, for runs that resume from the checkpoint, unless writing takes too long
// (DurableLogs).
struct SyncLog {
  static constexpr const char* kName = "SyncLog";
  static constexpr bool kIncidental = true;
};
struct LogSynced {
  static constexpr const char* kName = "LogSynced";
};
// Finish and end, after all earlier messages.
struct FinishLog {
  static constexpr const char* kName = "FinishLog";
  static constexpr bool kIncidental = true;
};

// ---- the end

struct TrainingDone {
  static constexpr const char* kName = "TrainingDone";
  static constexpr bool kReserved = true;
  bool stopped = false;                        // on request, before max_duration
  bool checkpoint_follows = false;             // the last checkpoint is not concluded yet
  std::optional<OperatingError> failure = {};  // why training cannot continue
  int64_t checkpoints = 0;  // with a failure: checkpoints of this attempt, all to be concluded first
  bool skipping = false;    // the last steps were all skipped: EndKind::kSkipping
  bool alone = false;       // only this rank knows the failure; else all ranks
};

}  // namespace tutti
