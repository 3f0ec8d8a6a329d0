#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

enum class FaultKind {
  kDeath,        // a rank's process is killed
  kPowerLoss,    // all are, and the disk keeps only what was synced
  kSigterm,      // a rank is asked to stop
  kSlow,         // a rank's steps take long
  kDelay,        // control messages of a rank take long
  kReorder,      // control messages take long, each as long as it is drawn
  kHang,         // a collective does not end
  kDiskFull,     // writes fail
  kWriteError,   // writes fail
  kLostWrite,    // writes are taken and do not land
  kOutOfMemory,  // an allocation of a rank's forward, backward or evaluation fails
  kTornWrite,    // writes are taken and land up to the middle
};

// One [[fault]] of a plan; what is not given is drawn from the seed.
struct FaultRule {
  FaultKind kind = FaultKind::kDeath;
  std::string name;   // of the kind, as the plan has it
  std::string label;  // the rule's own: "death", and where the plan has several of a kind "death (rule 3)"
  double probability = 1;
  std::optional<int> rank;
  std::optional<int64_t> step;
  std::string phase;   // "any", or one of fault_phases(kind)
  double seconds = 0;  // what a slow, delayed or hanging thing takes; 0: a hang never ends
  int64_t count = 1;  // steps, messages or writes that it happens to; the most that it is drawn from (memory)
  std::string file;   // part of the paths of writes that it happens to

  bool hits_disk() const;
};

struct FaultPlan {
  std::string path;  // of the file; "" = no faults
  int starts = 3;    // that faults happen in; from then on there are none
  std::vector<FaultRule> rules;
};

// Of a step: what a lone rank does not go through.
inline constexpr const char* kReducePhase = "reduce";
inline constexpr const char* kVerdictPhase = "verdict";

// What ranks go through, in the order of a step: those of which "any" draws one, in which the kind can
// strike.
std::span<const std::string> fault_phases(FaultKind kind);

std::span<const Catalog> fault_catalogs();

// Throws UserError: no such file, kind, key; a rank that `ranks` do not have.
FaultPlan read_fault_plan(const std::string& path, int ranks);
FaultPlan make_fault_plan(const Setting& written, int ranks);

}  // namespace tutti
