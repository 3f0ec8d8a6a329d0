#include "job/accumulation.h"

#include <algorithm>

namespace tutti {

void require_accumulation(const Job& job, const Model& model) {
  const ReproducibilitySettings& elastic = job.settings.reproducibility;
  if (elastic.is_elastic() && model.uses_all_ranks())
    elastic.mode.fail("the model computes with the samples of all ranks, so its bits depend on ranks");
  if (!model.uses_all_ranks() || !job.settings.train.accumulation.automatic()) return;
  job.settings.train.accumulation.key.fail(
      "the model computes with the samples of all ranks, so that no rank can try a step again in smaller "
      "microbatches; expected a number");
}

// Microbatches beyond the samples of a rank's full batch are empty, unless algorithms make more samples.
std::string accumulation_advice(const Job& job) {
  const int64_t samples = largest_part(std::min(job.global_batch, job.train_samples()), job.data_world());
  const auto exceeds = [&](const auto& step) { return step.second > samples; };
  if (std::ranges::none_of(job.settings.train.accumulation.steps, exceeds)) return {};
  const Setting& key = job.settings.train.accumulation.key;
  return key.position.text() + ": " + key.path + " = " + key.toml() + ": a rank has at most " +
         std::to_string(samples) + " samples of a batch, and further microbatches are empty";
}

}  // namespace tutti
