#include <algorithm>
#include <optional>

#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

// The first step that does not end on the bits it should.
void check_steps(const StartSeen& expected, const StartSeen& start, Findings& findings) {
  for (std::size_t rank = 0; rank < start.steps.size(); ++rank) {
    for (const auto& [step, seen] : start.steps[rank]) {
      if (seen.weights == 0) continue;
      const auto same = expected.steps[rank].find(step);
      if (same != expected.steps[rank].end() && same->second.weights == seen.weights) continue;
      findings.push_back("rank " + std::to_string(rank) + " ended step " + std::to_string(step) +
                         " on other bits than the run without faults");
      return;
    }
  }
}

// What a checkpoint of the step holds of weights. Algorithms may change them when a step is committed: where
// they do, nothing is known of a step after which none was saved.
std::optional<uint64_t> saved_after(const StartSeen& expected, int64_t step) {
  const auto saved = expected.published.find(step);
  if (saved != expected.published.end()) return saved->second.weights;
  const auto& steps = expected.steps.front();
  const auto is_as_committed = [&](const auto& one) {
    const auto committed = steps.find(one.first);
    return committed == steps.end() || committed->second.weights == one.second.weights;
  };
  if (!std::ranges::all_of(expected.published, is_as_committed)) return std::nullopt;
  const auto committed = steps.find(step);
  return committed == steps.end() ? 0 : committed->second.weights;
}

// A lost or torn write may have cost the last checkpoint; the one before it is as good.
void check_newest(const StartSeen& expected, const RunSeen& run, Findings& findings) {
  const auto right = saved_after(expected, run.saved_step);
  if (run.weights == 0 || !run.saved_whole || !right || *right == run.weights) return;
  findings.push_back("the checkpoint of step " + std::to_string(run.saved_step) +
                     " holds other bits than that step of the run without faults");
}

// A run that was stopped in its last evaluation has saved itself after all its steps, and saves no more.
bool was_cut_at_its_end(const StartSeen& start) {
  return std::any_of(start.ends.begin(), start.ends.end(), [](const RankEnd& end) {
    return end.kind != EndKind::kDone && end.kind != EndKind::kKilled;
  });
}

bool differ(const SavedBits& saved, const SavedBits& expected) {
  return saved.all != 0 && saved.all != expected.all;
}

// What the run without faults has published after the same steps.
void check_saved(const StartSeen& expected, const StartSeen& start, int64_t last, Findings& findings) {
  for (const auto& [step, bits] : start.published) {
    const auto same = expected.published.find(step);
    if (same == expected.published.end() || !differ(bits, same->second)) continue;
    if (step == last && was_cut_at_its_end(start)) continue;
    findings.push_back("the checkpoint that was published after step " + std::to_string(step) +
                       " holds another state than that of the run without faults: of the model, the "
                       "optimizer, a listener or the loss's scale");
    return;
  }
}

// A rank that ran out of memory does its steps in more parts from then on, which gives other bits.
void note_microbatches(const StartSeen& start, std::vector<int>& microbatches) {
  std::map<int64_t, int> most;
  for (const auto& rank : start.steps)
    for (const auto& [step, seen] : rank) most[step] = std::max(most[step], seen.microbatches);
  for (const auto& [step, count] : most)
    if (count > 0 && step <= static_cast<int64_t>(microbatches.size())) microbatches[step - 1] = count;
}

}  // namespace

void check_bits(const RunFacts& facts, const RunSeen& run, Findings& findings) {
  std::vector<int> microbatches(static_cast<std::size_t>(facts.fault_free.starts.front().last_step()), 1);
  for (const StartSeen& start : run.starts) {
    note_microbatches(start, microbatches);
    const StartSeen& expected = facts.in_microbatches(microbatches);
    check_steps(expected, start, findings);
    check_saved(expected, start, facts.fault_free.saved_step, findings);
  }
  check_newest(facts.in_microbatches(microbatches), run, findings);
  const bool ended = run.starts.back().well() && !run.starts.back().stopped();
  if (ended && !run.starts.back().damages() && run.saved_step != facts.fault_free.saved_step)
    findings.push_back("the run's last checkpoint is of step " + std::to_string(run.saved_step) + ", not " +
                       std::to_string(facts.fault_free.saved_step));
}

}  // namespace tutti
