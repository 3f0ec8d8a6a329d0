#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "recipe/setting.h"
#include "tensors/param_view.h"
#include "training/optimizers/closure.h"

namespace tutti {

// A persistent tensor of an optimizer, at one address for its whole life: a checkpoint reads it, a restore
// writes into it.
struct OptimizerState {
  const ParamView* view = nullptr;  // whose state it is
  std::string name;                 // torch.optim's: "momentum_buffer", "exp_avg", "step"
  at::Tensor tensor;                // of that piece's extent; "step" is an int64 scalar
};

// Changes parameters by their gradients, by libtorch's fused kernels. Memory is taken in the constructor: an
// update takes none but for scalars, since there is no way back once it has begun. One thread uses it.
class Optimizer {
 public:
  struct Common {
    double lr = 0.1;
    double weight_decay = 0.0;
    std::vector<std::string>
        no_decay;  // parameters whose names match one of these ("*.bias") keep weight_decay 0
  };

  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;

  virtual const char* name() const = 0;  // torch's or Composer's: "DecoupledAdamW"

  // One update of every parameter whose view has a gradient. Gradients are divided by `grad_scale` (float32
  // scalar; undefined = 1) inside the kernel, which leaves the quotient in them. Does nothing where
  // `found_inf` (float32 scalar) is not zero. Asserts that gradients have their parameters' strides.
  void step(const at::Tensor& grad_scale = {}, const at::Tensor& found_inf = {});

  // The same for one that may want passes of its own first. Default: Closure::step.
  virtual void step(Closure& closure) { closure.step(); }

  // What the next step multiplies with; starts as base_lr, the recipe's.
  double lr() const { return lr_; }
  double base_lr() const { return common_.lr; }
  void set_lr(double lr) { lr_ = lr; }

  // L2 norms of the last step's traces in the view of that index, for those who watch: "moment", "param",
  // "update" (the change of the parameter). None for optimizers that keep too little. Composer's
  // report_per_parameter_metrics.
  virtual std::vector<std::pair<std::string, double>> norms(size_t view) const;

  // How many updates the view of that index has had; those of all views: the most that one has had.
  int64_t steps(size_t view) const { return steps_.const_data_ptr<int64_t>()[view]; }
  int64_t steps() const;
  std::vector<OptimizerState> state() const;

 protected:
  // Parameters that are updated by one kernel call.
  struct Group {
    double weight_decay = 0.0;
    std::vector<size_t> members;  // indices of views
  };
  // The arguments of one kernel call: members that have a gradient.
  struct Call {
    double weight_decay = 0.0;
    std::vector<size_t> members;
    std::vector<at::Tensor> tensors;
    std::vector<at::Tensor> grads;
  };
  using StateTensors = std::vector<at::Tensor>;  // one a view

  // The views must outlive the optimizer; their gradients are looked up at each step.
  Optimizer(const std::vector<ParamView>& views, Common common);

  StateTensors& add_state(
      const std::string& name);  // zeros like each view's tensor; the reference stays good
  // steps() counts this one already.
  virtual void update(const Call& call, const at::Tensor& grad_scale) = 0;
  const ParamView& view(size_t index) const { return views_[index]; }
  double weight_decay_of(size_t view) const;
  static std::vector<at::Tensor> pick(const StateTensors& tensors, const std::vector<size_t>& members);

 private:
  Call call_of(const Group& group) const;

  const std::vector<ParamView>& views_;
  Common common_;
  double lr_;
  at::Tensor steps_;  // [views] int64
  std::vector<Group> groups_;
  std::vector<std::pair<std::string, std::unique_ptr<StateTensors>>> states_;
};

// What [optimizer] names: sgd, adam, adamw, decoupled_sgdw, decoupled_adamw.
std::unique_ptr<Optimizer> make_optimizer(const Setting& section, const std::vector<ParamView>& views);

// Whether `name` is like `pattern`, in which * stands for any run of characters.
bool matches_pattern(const std::string& pattern, const std::string& name);

}  // namespace tutti
