#pragma once

#include "tensors/elementwise.h"
#include "training/optimizers/optimizer.h"

namespace tutti {

// torch.optim.Adam (weight decay added to the gradient), torch.optim.AdamW (weights shrink by lr *
// weight_decay) and composer.optim.DecoupledAdamW (weights shrink by weight_decay * lr / base_lr).
class Adam final : public Optimizer {
 public:
  enum class Decay { kGradient, kWeight, kDecoupled };
  struct Options {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    bool amsgrad = false;
    Decay decay = Decay::kGradient;
    bool maximize = false;  // maximize the loss
  };

  Adam(const std::vector<ParamView>& views, Common common, const Options& options);

  const char* name() const override;
  bool skips_on_device() const override { return true; }
  std::vector<std::pair<std::string, ExactSum>> squares(size_t view) const override;

 private:
  void update(Call call, const at::Tensor& grad_scale) override;
  void count_steps(const std::vector<size_t>& members);
  void run_kernel(const Elementwise::Lists& lists, const std::vector<at::Tensor>& steps, const Call& call,
                  const at::Tensor& grad_scale);
  void views_changed() override;
  double kernel_weight_decay(const Call& call, const std::vector<at::Tensor>& tensors) const;
  double shrinkage(size_t view) const;

  Options options_;
  StateTensors& exp_avg_;
  StateTensors& exp_avg_sq_;
  StateTensors* max_exp_avg_sq_ = nullptr;
  StateTensors steps_;  // float32 scalars, as the kernel expects
  Elementwise elementwise_;
};

}  // namespace tutti
