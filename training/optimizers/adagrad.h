#pragma once

#include "training/optimizers/options.h"
#include "training/optimizers/partwise_optimizer.h"

namespace tutti {

// torch.optim.Adagrad (Duchi et al. 2011).
class Adagrad final : public PartwiseOptimizer {
 public:
  Adagrad(const std::vector<ParamView>& views, Common common, const AdagradOptions& options);

  const char* name() const override { return "Adagrad"; }

 private:
  void update_part(const InParts::Part& part, const Call& call, size_t view) override;

  AdagradOptions options_;
};

}  // namespace tutti
