#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "recipe/catalog.h"
#include "recipe/setting.h"
#include "runtime/random.h"
#include "runtime/recorder.h"

namespace tutti {

enum class FaultKind {
  kDeath,        // a rank's process is killed
  kPowerLoss,    // all processes are killed, and the disk keeps only synced data
  kSigterm,      // a rank is asked to stop
  kSlow,         // a rank's steps take longer
  kDelay,        // a rank's control messages arrive later
  kReorder,      // control messages arrive later, each by a drawn time
  kHang,         // a collective does not end
  kDiskFull,     // writes fail: no space
  kWriteError,   // writes fail: I/O error
  kLostWrite,    // writes report success and store nothing
  kOutOfMemory,  // an allocation of a rank's forward, backward or evaluation fails
  kTornWrite,    // writes report success and store the first half
  kSlowLink,     // data from a rank to another arrive later
  kClog,         // the links of several ranks are held, and released in another order
  kCut,          // data from a rank to another are held until the link heals
  kPause,        // a rank's process stops for some time
  kClockJump,    // a rank's wall clock jumps
  kSlowDisk,     // a rank's disk answers later
};

// The phases of a rank's step, in order. Memory may run out in kMicrobatch, kBackward and kEvaluation.
enum class FaultPhase {
  kStart,
  kLoad,
  kBatch,
  kMicrobatch,
  kBackward,
  kReduce,   // not on one rank
  kVerdict,  // not on one rank
  kCommit,
  kEvaluation,
  kDurable,
  kPublish,
  kDisk
};

// A [[fault]] of a plan; absent values are drawn from the seed.
struct FaultRule {
  FaultKind kind = FaultKind::kDeath;
  std::string name;   // of the kind in the plan
  std::string label;  // unique in the plan: "death", or "death (rule 3)" if several have the kind
  double probability = 1;
  std::optional<int> rank;
  std::optional<int64_t> step;
  std::optional<FaultPhase> phase;  // one of fault_phases(kind)
  std::optional<int> to;            // the receiver, if the fault has one link
  double seconds = 0;  // by which a step or message is late, or for which a hang lasts; 0: endless
  int64_t count = 1;   // of affected steps, messages, ranks or writes; of allocations to draw from
  std::string file;    // affects writes to paths that contain this

  // `seconds`, or a part of them.
  Nanoseconds duration(double part = 1) const;
  bool affects_writes() const;
  bool needs_several_ranks() const;
  // The fault never ends by itself.
  bool endless() const;
  // Control messages, and so heartbeats, may be late.
  bool delays_messages() const;
  // The longest time, in seconds, by which the fault delays a step, message or collective; infinity if
  // endless.
  double lateness_s() const;
};

struct FaultPlan {
  std::string path;  // of the file; "" = no faults
  int starts = 3;    // the number of attempts with faults; later attempts have none
  std::vector<FaultRule> rules;
};

// The phases in which the kind can happen: "any" in a plan draws a phase.
std::span<const FaultPhase> fault_phases(FaultKind kind);

// The phase that begins with this event, if any.
std::optional<FaultPhase> phase_after(TraceKind kind);

std::span<const Catalog> fault_catalogs();

// Throw UserError for an unknown file, kind or key, and for a rank beyond `ranks`.
FaultPlan read_fault_plan(const std::string& path, int ranks);
FaultPlan make_fault_plan(const Setting& written, int ranks);

// The faults of one attempt, with the drawn ranks, steps and phases.
class ScheduledFaults {
 public:
  // Steps are drawn from 1 to `steps`, the length of a whole run.
  ScheduledFaults(const FaultPlan& plan, const RandomKey& draw, int ranks, int64_t steps);
  ScheduledFaults() = default;

  // The rules due when a rank enters this phase, in the scheduled step or later. Each rule once.
  std::vector<const FaultRule*> due(int rank, int64_t step, FaultPhase phase);

 private:
  struct Scheduled {
    const FaultRule* rule;
    int rank;
    int64_t step;
    FaultPhase phase;
    int64_t skipped;  // times that the rank enters the phase before the fault
  };
  std::vector<Scheduled> scheduled_;
};

// The number of effects of a fault.
struct FaultCount {
  std::optional<FaultKind> kind = {};  // none: the recipe's memory budget
  int64_t count = 0;
};
using FaultCounts = std::map<std::string, FaultCount>;  // by FaultRule::label

}  // namespace tutti
