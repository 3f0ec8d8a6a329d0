#include "actors/compute/step_memory.h"

#include <algorithm>
#include <vector>

#include "runtime/probe/probe.h"
#include "tensors/memory/meter.h"
#include "tensors/memory/out_of_memory.h"

namespace tutti {
namespace {

void probe_lack_of_memory(const std::vector<OutOfMemoryReport>& all) {
  const auto lacking =
      std::ranges::count_if(all, [](const OutOfMemoryReport& report) { return report.ranks > 0; });
  if (all.size() == 1) TUTTI_PROBE("verdict: memory ran out on the only rank");
  if (lacking == 1 && all.size() > 1) TUTTI_PROBE("verdict: memory ran out on one rank of several");
  if (lacking == 2 && all.size() > 2) TUTTI_PROBE("verdict: memory ran out on two ranks of several");
  if (lacking > 1 && lacking == std::ssize(all)) TUTTI_PROBE("verdict: memory ran out on all ranks");
}

}  // namespace

StepMemory::StepMemory(const Job& job, Log& log, const State& state)
    : job_(job),
      log_(log),
      state_(state),
      accumulation_(job.settings.train.accumulation,
                    largest_part(job.global_batch, state.topology.data_world)) {}

StepMemory::~StepMemory() { Meter::set_budget(state_.device.memory_slot, 0); }

void StepMemory::begin() {
  const int slot = state_.device.memory_slot;
  Meter::set_budget(slot, job_.settings.device.memory_budget(state_.topology.rank));
  if (const std::string limit = Meter::limit(); !limit.empty()) log_.info("memory is limited: " + limit);
  ledger_.add(HeldFor::kParameters,
              [this] { return bytes_of(state_.views, [](const ParamView& view) { return view.tensor; }); });
  if (!state_.device.is_cpu() && state_.offloads_optimizer) return;
  ledger_.add(HeldFor::kOptimizer, [this] {
    return bytes_of(state_.optimizer->state(), [](const OptimizerState& state) { return state.tensor; });
  });
}

PortionPlan StepMemory::plan() const {
  if (state_.topology.has_grains) return {state_.topology.data_parts, 0};
  return {accumulation_.count(state_.timestamp.batch), accumulation_.microbatch_size()};
}

void StepMemory::grow_back() {
  if (accumulation_.committed(state_.timestamp))
    log_.info(step_text(state_) + "memory has sufficed for long; grad_accum is now " +
              std::to_string(plan().count));
}

// All ranks come to the same decision, whichever of them ran out of memory.
void StepMemory::shrink(const Pass& mine, const BatchReady& ready, Exchange& exchange, Engine& engine) {
  Meter::empty_device_cache(state_.device.memory_slot);
  if (mine.leftover_bytes > 0)
    log_.warning(step_text(state_) + std::to_string(mine.leftover_bytes) +
                 " bytes of the aborted step are still held");
  const auto row = report_row(report(mine, ready.batch), state_.topology.rank, state_.topology.world);
  const auto all = reports_of(exchange.sum(row));
  probe_lack_of_memory(all);
  const std::string who = step_text(state_) + out_of_memory_text(all);
  const std::string held = "; what held it: " + what_held_memory(all);
  engine.out_of_memory(who + held);
  const int64_t largest = largest_part(ready.global_samples, state_.topology.data_world);
  if (!accumulation_.out_of_memory(state_.timestamp, largest)) {
    if (accumulation_.automatic())
      TUTTI_PROBE("verdict: memory ran out with one sample at a time");
    else
      TUTTI_PROBE("verdict: memory ran out with a set number of microbatches");
    const std::string why =
        accumulation_.automatic() ? " with one sample at a time, and there is nothing smaller"
        : state_.topology.has_grains
            ? " with a grain; more reproducibility.grains are smaller, and have other bits"
            : "; grad_accum = \"auto\" would continue in smaller microbatches";
    throw AgreedOutOfMemory(EndKind::kOutOfMemoryInStep, who + why + held);
  }
  log_.warning(who + "; grad_accum is now " + std::to_string(plan().count));
}

OutOfMemoryReport StepMemory::report(const Pass& mine, const Batch& batch) const {
  if (!mine.failed_allocation) return {};
  OutOfMemoryReport report;
  report.ranks = 1;
  report.asked = static_cast<double>(mine.failed_allocation->asked_bytes);
  report.used = static_cast<double>(mine.failed_allocation->used_bytes);
  report.budget = static_cast<double>(mine.failed_allocation->budget_bytes);
  report.words = mine.failed_allocation->words;
  report.held = ledger_.held();
  report.held += mine.held;
  report.held[HeldFor::kBatch] += bytes_of(batch.leaves(), [](const auto& leaf) { return leaf.second; });
  return report;
}

std::string step_text(const State& state) {
  return "step " + std::to_string(state.timestamp.batch + 1) + ": ";
}

}  // namespace tutti
