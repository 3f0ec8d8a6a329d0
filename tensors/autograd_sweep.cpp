#include "tensors/autograd_sweep.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>

namespace tutti {

AutogradSweep::AutogradSweep() {
  const at::AutoGradMode with_grad(true);
  leaf_ = at::ones({});
  leaf_.requires_grad_(true);
  root_ = at::mul(leaf_, 1.0);
}

void AutogradSweep::run() {
  root_.backward({}, /*retain_graph=*/true);
  leaf_.mutable_grad() = at::Tensor();
}

}  // namespace tutti
