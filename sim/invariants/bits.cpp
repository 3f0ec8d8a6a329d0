#include <algorithm>
#include <optional>

#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

// The first step after which a rank has other weights than expected.
void check_steps(const SimAttempt& expected, const SimAttempt& attempt, Findings& findings) {
  for (std::size_t rank = 0; rank < attempt.steps.size(); ++rank) {
    for (const auto& [step, seen] : attempt.steps[rank]) {
      if (seen.weights == 0) continue;
      const auto same = expected.steps[rank].find(step);
      if (same != expected.steps[rank].end() && same->second.weights == seen.weights) continue;
      findings.push_back("rank " + std::to_string(rank) + " ended step " + std::to_string(step) +
                         " on other bits than the run without faults");
      return;
    }
  }
}

// The hash of the weights that a checkpoint of the step must hold. Unknown if algorithms change weights after
// the commit and the expected attempt saved no checkpoint of this step.
std::optional<uint64_t> expected_weights(const SimAttempt& expected, int64_t step) {
  const auto saved = expected.published.find(step);
  if (saved != expected.published.end()) return saved->second.weights;
  if (expected.pieces > 1) return std::nullopt;  // no rank holds what a checkpoint does
  const auto& steps = expected.steps.front();
  const auto is_as_committed = [&](const auto& published) {
    const auto committed = steps.find(published.first);
    return committed == steps.end() || committed->second.weights == published.second.weights;
  };
  if (!std::ranges::all_of(expected.published, is_as_committed)) return std::nullopt;
  const auto committed = steps.find(step);
  return committed == steps.end() ? 0 : committed->second.weights;
}

// Any newest checkpoint will do: a lost or torn write may have damaged a newer one.
void check_newest(const SimAttempt& expected, const SimRun& run, Findings& findings) {
  const auto weights = expected_weights(expected, run.saved_step);
  if (run.weights == 0 || !run.saved_whole || !weights || *weights == run.weights) return;
  findings.push_back("the checkpoint of step " + std::to_string(run.saved_step) +
                     " holds other bits than that step of the run without faults");
}

// True if a rank did not finish. Stopped in the last evaluation, a run keeps the checkpoint that it saved
// then.
bool was_cut_at_its_end(const SimAttempt& attempt) {
  return std::any_of(attempt.ends.begin(), attempt.ends.end(), [](const RankEnd& end) {
    return end.kind != EndKind::kDone && end.kind != EndKind::kKilled;
  });
}

bool differ(const SavedBits& saved, const SavedBits& expected) {
  return saved.all != 0 && saved.all != expected.all;
}

// Compares published checkpoints with those of the run without faults, of the same steps.
void check_saved(const SimAttempt& expected, const SimAttempt& attempt, int64_t last, Findings& findings) {
  for (const auto& [step, bits] : attempt.published) {
    const auto same = expected.published.find(step);
    if (same == expected.published.end() || !differ(bits, same->second)) continue;
    if (step == last && was_cut_at_its_end(attempt)) continue;
    findings.push_back("the checkpoint that was published after step " + std::to_string(step) +
                       " holds another state than that of the run without faults: of the model, the "
                       "optimizer, a listener or the loss's scale");
    return;
  }
}

// Updates the number of microbatches of each step: it changes the bits, and grows when memory runs out.
void update_microbatches(const SimAttempt& attempt, std::vector<int>& microbatches) {
  std::map<int64_t, int> most;
  for (const auto& rank : attempt.steps)
    for (const auto& [step, seen] : rank) most[step] = std::max(most[step], seen.microbatches);
  for (const auto& [step, count] : most)
    if (count > 0 && step <= static_cast<int64_t>(microbatches.size())) microbatches[step - 1] = count;
}

}  // namespace

void check_ranks_agree(const SimRun& run, Findings& findings) {
  for (const SimAttempt& attempt : run.attempts) {
    using Piece = std::pair<int64_t, std::size_t>;            // of a step
    std::map<Piece, std::pair<std::size_t, uint64_t>> first;  // a rank and the hash of its weights
    for (std::size_t rank = 0; rank < attempt.steps.size(); ++rank) {
      for (const auto& [step, seen] : attempt.steps[rank]) {
        if (seen.weights == 0) continue;
        const Piece piece{step, rank % static_cast<std::size_t>(attempt.pieces)};
        const auto& [other, weights] = first.try_emplace(piece, rank, seen.weights).first->second;
        if (weights == seen.weights) continue;
        findings.push_back("after step " + std::to_string(step) + " rank " + std::to_string(rank) +
                           " holds other weights than rank " + std::to_string(other));
        return;
      }
    }
  }
}

void check_bits(const Reference& reference, const SimRun& run, Findings& findings) {
  std::vector<int> microbatches(static_cast<std::size_t>(reference.fault_free.attempts.front().last_step()),
                                1);
  for (const SimAttempt& attempt : run.attempts) {
    update_microbatches(attempt, microbatches);
    const SimAttempt& expected = reference.with_microbatches(microbatches);
    check_steps(expected, attempt, findings);
    check_saved(expected, attempt, reference.fault_free.saved_step, findings);
  }
  check_newest(reference.with_microbatches(microbatches), run, findings);
  const bool ended = run.attempts.back().well() && !run.attempts.back().stopped();
  if (ended && !run.attempts.back().damages_files() && run.saved_step != reference.fault_free.saved_step)
    findings.push_back("the run's last checkpoint is of step " + std::to_string(run.saved_step) + ", not " +
                       std::to_string(reference.fault_free.saved_step));
}

}  // namespace tutti
