#pragma once

#include <cstdint>

#include "recipe/options.h"

// Options of diffusion models. Free of libtorch.
namespace tutti {

enum class BetaSchedule { kLinear, kScaledLinear, kSquaredCosine };
enum class PredictionType { kEpsilon, kSample, kVelocity };
enum class VarianceType { kFixedSmall, kFixedLarge };

// Names and defaults of diffusers' DDPMScheduler.
struct NoiseOptions {
  int64_t num_train_timesteps = 1000;
  double beta_start = 0.0001;
  double beta_end = 0.02;
  BetaSchedule beta_schedule = BetaSchedule::kLinear;
  PredictionType prediction_type = PredictionType::kEpsilon;
  VarianceType variance_type = VarianceType::kFixedSmall;
  bool clip_sample = true;
  double clip_sample_range = 1.0;
};

// The keys, bound for options that derive from NoiseOptions.
template <class Options>
std::vector<Bound<Options>> noise_keys() {
  return {
      option<Options>("num_train_timesteps", &NoiseOptions::num_train_timesteps, "steps of the noise")
          .at_least(1)
          .at_most(1e6),
      option<Options>("beta_start", &NoiseOptions::beta_start, "variance of the noise of the first step")
          .more_than(0)
          .less_than(1),
      option<Options>("beta_end", &NoiseOptions::beta_end, "likewise of the last step")
          .more_than(0)
          .less_than(1),
      option<Options>("beta_schedule", &NoiseOptions::beta_schedule,
                      "how the variance grows between; squaredcos_cap_v2 takes no beta_start and beta_end",
                      {{"linear", BetaSchedule::kLinear},
                       {"scaled_linear", BetaSchedule::kScaledLinear},
                       {"squaredcos_cap_v2", BetaSchedule::kSquaredCosine}}),
      option<Options>("prediction_type", &NoiseOptions::prediction_type,
                      "what the model predicts: the noise, the image without it, or the velocity",
                      {{"epsilon", PredictionType::kEpsilon},
                       {"sample", PredictionType::kSample},
                       {"v_prediction", PredictionType::kVelocity}}),
      option<Options>(
          "variance_type", &NoiseOptions::variance_type, "of the noise that sampling by ddpm adds",
          {{"fixed_small", VarianceType::kFixedSmall}, {"fixed_large", VarianceType::kFixedLarge}}),
      option<Options>("clip_sample", &NoiseOptions::clip_sample,
                      "each step of sampling clips the image that it predicts"),
      option<Options>("clip_sample_range", &NoiseOptions::clip_sample_range, "to [-range, range]")
          .more_than(0)};
}

}  // namespace tutti
