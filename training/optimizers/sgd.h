#pragma once

#include "tensors/elementwise.h"
#include "training/optimizers/optimizer.h"

namespace tutti {

// torch.optim.SGD. With `decoupled` composer.optim.DecoupledSGDW: before the step weights shrink by
// weight_decay * lr / base_lr, and weight decay is not added to the gradient.
class Sgd final : public Optimizer {
 public:
  struct Options {
    double momentum = 0.0;
    double dampening = 0.0;
    bool nesterov = false;
    bool decoupled = false;
    bool maximize = false;  // maximize the loss
  };

  Sgd(const std::vector<ParamView>& views, Common common, const Options& options);

  const char* name() const override { return options_.decoupled ? "DecoupledSGDW" : "SGD"; }
  bool skips_on_device() const override { return true; }

 private:
  void update(Call call, const at::Tensor& grad_scale) override;
  void views_changed() override;
  void apply(Call call, const at::Tensor& grad_scale, bool is_first_step);
  void apply_in_fp32(const Call& call, const at::Tensor& grad_scale, bool is_first_step);
  void run_kernel(Call call, std::vector<at::Tensor> buffers, const at::Tensor& grad_scale,
                  bool is_first_step);

  Options options_;
  StateTensors* momentum_buffers_ = nullptr;
  at::Tensor wide_[3];  // float32 copies of a 16-bit parameter, its gradient and its momentum
  Elementwise elementwise_;
};

}  // namespace tutti
