#pragma once

#include <memory>
#include <vector>

#include "recipe/options.h"

// The kinds of [optimizer], with torch.optim's and Composer's names and defaults. Free of libtorch.
namespace tutti {

class Optimizer;
using OptimizerPtr = std::unique_ptr<Optimizer>;
struct ParamView;

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

using OptimizerKinds =
    Kinds<SgdOptions, DecoupledSgdwOptions, AdamOptions, AdamWOptions, DecoupledAdamWOptions>;

// The catalog of [optimizer].
Catalog optimizer_catalog();

}  // namespace tutti
