#pragma once

#include "training/optimizers/options.h"
#include "training/optimizers/partwise_optimizer.h"

namespace tutti {

// torch.optim.RMSprop (Hinton's lecture; `centered`: Graves 2013, arXiv:1308.0850).
class RmsProp final : public PartwiseOptimizer {
 public:
  RmsProp(const std::vector<ParamView>& views, Common common, const RmsPropOptions& options);

  const char* name() const override { return "RMSprop"; }

 private:
  void update_part(const InParts::Part& part, const Call& call, size_t view) override;

  RmsPropOptions options_;
};

}  // namespace tutti
