#include <algorithm>
#include <map>
#include <set>

#include "sim/invariants/invariants.h"

namespace tutti {
namespace {

// The samples of each step, by the last attempt that committed the step.
std::map<int64_t, std::vector<int64_t>> samples_by_step(const SimRun& run) {
  std::map<int64_t, std::vector<int64_t>> steps;
  for (const SimAttempt& attempt : run.attempts) {
    std::map<int64_t, std::vector<int64_t>> attempt_steps;
    for (const auto& rank : attempt.steps)
      for (const auto& [step, seen] : rank)
        if (seen.weights != 0)
          attempt_steps[step].insert(attempt_steps[step].end(), seen.samples.begin(), seen.samples.end());
    for (auto& [step, samples] : attempt_steps) steps[step] = std::move(samples);
  }
  return steps;
}

std::string in_epoch(int64_t epoch) { return " in epoch " + std::to_string(epoch); }

void check_epoch(int64_t epoch, std::vector<int64_t> samples, int64_t expected, Findings& findings) {
  std::sort(samples.begin(), samples.end());
  const auto twice = std::adjacent_find(samples.begin(), samples.end());
  if (twice != samples.end())
    findings.push_back("sample " + std::to_string(*twice) + " was trained on twice" + in_epoch(epoch));
  const auto seen = static_cast<int64_t>(std::set<int64_t>(samples.begin(), samples.end()).size());
  if (seen != expected)
    findings.push_back(std::to_string(seen) + " of " + std::to_string(expected) + " samples were trained on" +
                       in_epoch(epoch));
  if (!samples.empty() && samples.front() < 0)
    findings.push_back("a batch that no loader made was trained on" + in_epoch(epoch));
}

}  // namespace

// Runs that did not end well are left out: their last step may be committed on some ranks only.
void check_samples(const Reference& reference, const SimRun& run, Findings& findings) {
  if (run.attempts.empty() || !run.attempts.back().well()) return;
  if (reference.job.recipe.at("data").at("train").has("sampler")) return;  // draws with replacement
  const Sampler sampler = reference.job.train_sampler(0);
  std::map<int64_t, std::vector<int64_t>> epochs;
  std::map<int64_t, int64_t> expected;
  for (auto& [step, samples] : samples_by_step(run)) {
    const int64_t epoch = (step - 1) / sampler.batches();
    epochs[epoch].insert(epochs[epoch].end(), samples.begin(), samples.end());
  }
  const SimAttempt& whole = reference.fault_free.attempts.front();
  const int64_t last = run.attempts.back().stopped() ? 0 : whole.last_step();
  for (int64_t step = std::max<int64_t>(whole.resumed_at, 0) + 1; step <= last; ++step)
    expected[(step - 1) / sampler.batches()] += sampler.global_samples((step - 1) % sampler.batches());
  for (const auto& [epoch, samples] : expected) check_epoch(epoch, epochs[epoch], samples, findings);
}

}  // namespace tutti
