#pragma once

#include "training/optimizers/optimizer.h"

namespace tutti {

// torch.optim.SGD; with `decoupled`, composer.optim.DecoupledSGDW, where weights shrink by weight_decay * lr
// / base_lr before the step instead of the gradient growing by weight_decay * weight.
class Sgd final : public Optimizer {
 public:
  struct Options {
    double momentum = 0.0;
    double dampening = 0.0;
    bool nesterov = false;
    bool decoupled = false;
    bool maximize = false;  // climb instead of descending
  };

  Sgd(const std::vector<ParamView>& views, Common common, const Options& options);

  const char* name() const override { return options_.decoupled ? "DecoupledSGDW" : "SGD"; }

 private:
  void update(const Call& call, const at::Tensor& grad_scale) override;
  void take(const Call& call, const at::Tensor& grad_scale, bool is_first_step);
  void take_in_fp32(const Call& call, const at::Tensor& grad_scale, bool is_first_step);
  void run(const Call& call, const std::vector<at::Tensor>& buffers, const at::Tensor& grad_scale,
           bool is_first_step);

  Options options_;
  StateTensors* momentum_buffers_ = nullptr;
  at::Tensor wide_[3];  // for a parameter of 16 bits, its gradient and its momentum in float32
};

}  // namespace tutti
