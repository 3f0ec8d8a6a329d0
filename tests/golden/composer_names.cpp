#include "tests/golden/composer_names.h"

namespace tutti {

const std::map<std::string, std::string>& optimizer_kinds() {
  static const std::map<std::string, std::string> kinds = {
      {"torch.optim.SGD", "sgd"},
      {"torch.optim.Adam", "adam"},
      {"torch.optim.AdamW", "adamw"},
      {"composer.optim.DecoupledSGDW", "decoupled_sgdw"},
      {"composer.optim.DecoupledAdamW", "decoupled_adamw"}};
  return kinds;
}

const std::map<std::string, std::string>& scheduler_kinds() {
  static const std::map<std::string, std::string> kinds = {
      {"composer.optim.StepScheduler", "step"},
      {"composer.optim.MultiStepScheduler", "multistep"},
      {"composer.optim.ConstantScheduler", "constant"},
      {"composer.optim.LinearScheduler", "linear"},
      {"composer.optim.ExponentialScheduler", "exponential"},
      {"composer.optim.CosineAnnealingScheduler", "cosine_annealing"},
      {"composer.optim.CosineAnnealingWarmRestartsScheduler", "cosine_annealing_warm_restarts"},
      {"composer.optim.PolynomialScheduler", "polynomial"},
      {"composer.optim.MultiStepWithWarmupScheduler", "multistep_with_warmup"},
      {"composer.optim.ConstantWithWarmupScheduler", "constant_with_warmup"},
      {"composer.optim.LinearWithWarmupScheduler", "linear_with_warmup"},
      {"composer.optim.CosineAnnealingWithWarmupScheduler", "cosine_annealing_with_warmup"},
      {"composer.optim.PolynomialWithWarmupScheduler", "polynomial_with_warmup"}};
  return kinds;
}

}  // namespace tutti
