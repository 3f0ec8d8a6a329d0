#pragma once

#include <cstdint>

#include "training/optimizers/options.h"
#include "training/optimizers/partwise_optimizer.h"

namespace tutti {

// torch.optim.NAdam (Dozat 2016). torch's state mu_product is computed from the number of steps.
class NAdam final : public PartwiseOptimizer {
 public:
  NAdam(const std::vector<ParamView>& views, Common common, const NAdamOptions& options);

  const char* name() const override { return "NAdam"; }

 private:
  void update(Call call, const at::Tensor& grad_scale) override;
  void update_part(const InParts::Part& part, const Call& call, size_t view) override;
  double momentum(int64_t step) const;
  double product_of_momenta(int64_t step);

  NAdamOptions options_;
  int64_t steps_of_product_ = 0;
  double product_ = 1.0;
  std::vector<double> products_;  // of each view, in the current update
};

}  // namespace tutti
