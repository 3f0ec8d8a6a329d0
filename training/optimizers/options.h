#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "recipe/section.h"

// The kinds of [optimizer], with torch.optim's and Composer's names and defaults. Free of libtorch.
namespace tutti {

class Optimizer;
using OptimizerPtr = std::unique_ptr<Optimizer>;
struct ParamView;

// Hyperparameters of the parameters with these names, as a param group of torch.optim. The learning rate
// follows the same schedule as the optimizer's.
struct ParameterGroup {
  Given<std::vector<std::string>> match;          // name patterns
  Given<std::optional<double>> lr, weight_decay;  // absent: the optimizer's

  static Kind<ParameterGroup> kind();
};

// The keys of every kind of optimizer.
struct OptimizerKeys {
  Given<std::vector<std::string>> no_decay;  // name patterns of parameters without weight decay
  Given<double> layer_decay = 1.0;
  Setting groups;  // tables of ParameterGroup, or none

  static Kind<OptimizerKeys> kind();
};

struct SgdOptions {
  double lr = 0.001;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
  bool maximize = false;

  static Kind<SgdOptions> kind();
  OptimizerPtr make(const Setting& section, const std::vector<ParamView>& views) const;
};

struct DecoupledSgdwOptions : SgdOptions {
  static Kind<DecoupledSgdwOptions> kind();
  OptimizerPtr make(const Setting& section, const std::vector<ParamView>& views) const;
};

struct AdamOptions {
  double lr = 0.001;
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool amsgrad = false;
  bool maximize = false;

  static Kind<AdamOptions> kind();
  OptimizerPtr make(const Setting& section, const std::vector<ParamView>& views) const;
};

struct AdamWOptions : AdamOptions {
  AdamWOptions() : AdamOptions{.weight_decay = 0.01} {}

  static Kind<AdamWOptions> kind();
  OptimizerPtr make(const Setting& section, const std::vector<ParamView>& views) const;
};

struct DecoupledAdamWOptions : AdamOptions {
  DecoupledAdamWOptions() : AdamOptions{.betas = {0.9, 0.95}, .weight_decay = 1e-5} {}

  static Kind<DecoupledAdamWOptions> kind();
  OptimizerPtr make(const Setting& section, const std::vector<ParamView>& views) const;
};

struct NAdamOptions {
  double lr = 0.002;
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.0;
  double momentum_decay = 0.004;
  bool decoupled_weight_decay = false;
  bool maximize = false;

  static Kind<NAdamOptions> kind();
  OptimizerPtr make(const Setting& section, const std::vector<ParamView>& views) const;
};

struct AdagradOptions {
  double lr = 0.01;
  double lr_decay = 0.0;
  double weight_decay = 0.0;
  double initial_accumulator_value = 0.0;
  double eps = 1e-10;
  bool maximize = false;

  static Kind<AdagradOptions> kind();
  OptimizerPtr make(const Setting& section, const std::vector<ParamView>& views) const;
};

struct RmsPropOptions {
  double lr = 0.01;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0.0;
  double momentum = 0.0;
  bool centered = false;
  bool maximize = false;

  static Kind<RmsPropOptions> kind();
  OptimizerPtr make(const Setting& section, const std::vector<ParamView>& views) const;
};

struct AdafactorOptions {
  double lr = 0.01;
  double beta2_decay = -0.8;
  std::optional<double> eps1;
  double eps2 = 0.001;
  double d = 1.0;
  double weight_decay = 0.0;
  bool maximize = false;

  static Kind<AdafactorOptions> kind();
  OptimizerPtr make(const Setting& section, const std::vector<ParamView>& views) const;
};

// lion_pytorch's and google/automl's.
struct LionOptions {
  double lr = 0.0001;
  std::vector<double> betas = {0.9, 0.99};
  double weight_decay = 0.0;

  static Kind<LionOptions> kind();
  OptimizerPtr make(const Setting& section, const std::vector<ParamView>& views) const;
};

// llm-foundry's.
struct DecoupledLionWOptions : LionOptions {
  static Kind<DecoupledLionWOptions> kind();
  OptimizerPtr make(const Setting& section, const std::vector<ParamView>& views) const;
};

// timm's.
struct LambOptions {
  double lr = 0.001;
  bool bias_correction = true;
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-6;
  double weight_decay = 0.01;
  bool grad_averaging = true;
  bool trust_clip = false;
  bool always_adapt = false;

  static Kind<LambOptions> kind();
  OptimizerPtr make(const Setting& section, const std::vector<ParamView>& views) const;
};

struct MuonOptions {
  enum class AdjustLr { kOriginal, kMatchRmsAdamw };

  double lr = 0.001;
  double weight_decay = 0.1;
  double momentum = 0.95;
  bool nesterov = true;
  std::vector<double> ns_coefficients = {3.4445, -4.775, 2.0315};
  double eps = 1e-7;
  int64_t ns_steps = 5;
  AdjustLr adjust_lr_fn = AdjustLr::kOriginal;
  std::optional<std::vector<std::string>> adamw_match;
  double adamw_lr = 0.0003;
  std::vector<double> adamw_betas = {0.9, 0.95};
  double adamw_eps = 1e-10;
  double adamw_weight_decay = 0.0;

  static Kind<MuonOptions> kind();
  OptimizerPtr make(const Setting& section, const std::vector<ParamView>& views) const;
};

using OptimizerKinds = Kinds<SgdOptions, DecoupledSgdwOptions, AdamOptions, AdamWOptions,
                             DecoupledAdamWOptions, NAdamOptions, AdagradOptions, RmsPropOptions,
                             AdafactorOptions, LionOptions, DecoupledLionWOptions, LambOptions, MuonOptions>;

// The catalog of [optimizer].
Catalog optimizer_catalog();

}  // namespace tutti
