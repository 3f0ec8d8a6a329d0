#pragma once

#include <string>

#include "actors/compute/accumulation.h"
#include "actors/compute/exchange.h"
#include "actors/compute/pass.h"
#include "actors/messages/messages.h"
#include "data/portions.h"
#include "job/job.h"
#include "runtime/log.h"
#include "tensors/memory/ledger.h"
#include "tensors/memory/out_of_memory.h"
#include "training/engine/engine.h"
#include "training/state.h"

namespace tutti {

// The memory of steps: its budget, the number of portions in which a step fits, and what held memory where a
// step did not fit.
class StepMemory {
 public:
  // All must outlive this.
  StepMemory(const Job& job, Log& log, const State& state);
  ~StepMemory();
  StepMemory(const StepMemory&) = delete;

  // Allocations count from now on.
  void begin();

  // Of the current step.
  PortionPlan plan() const;
  // After a committed step: may try fewer portions in the next step.
  void grow_back();
  // All ranks, after an aborted attempt: says which ranks lacked memory and what held it, and plans more
  // portions. Throws AgreedOutOfMemory if there can be no more.
  void shrink(const Pass& mine, const BatchReady& ready, Exchange& exchange, Engine& engine);

  // Owners of memory say what they hold.
  MemoryLedger& ledger() { return ledger_; }
  Accumulation& accumulation() { return accumulation_; }

 private:
  OutOfMemoryReport report(const Pass& mine, const Batch& batch) const;

  const Job& job_;
  Log& log_;
  const State& state_;
  Accumulation accumulation_;
  MemoryLedger ledger_;
};

// "step 7: ", of the current step.
std::string step_text(const State& state);

}  // namespace tutti
