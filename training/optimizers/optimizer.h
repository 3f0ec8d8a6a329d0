#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "recipe/setting.h"
#include "tensors/device.h"
#include "tensors/elementwise.h"
#include "tensors/exact_sum.h"
#include "tensors/param_view.h"
#include "training/optimizers/closure.h"

namespace tutti {

// A state tensor at a fixed address: a checkpoint reads it, a restore writes into it.
struct OptimizerState {
  const ParamView* view = nullptr;  // the parameter of the state
  std::string name;                 // torch.optim's: "momentum_buffer", "exp_avg", "step"
  at::Tensor tensor;                // shaped as the view; "step" is an int64 scalar
};

// Updates parameters with libtorch's fused kernels. What views keep on the host is copied to the
// device for each update, kStagedBytes of parameters at a time, and back, in the order of the device's work.
// All memory is allocated in the constructor; an update allocates only scalars, because it cannot be undone.
// Not thread-safe.
class Optimizer {
 public:
  struct Common {
    double lr = 0.1;
    double weight_decay = 0.0;
    std::vector<std::string> no_decay;  // name patterns ("*.bias") of parameters without weight decay
  };

  static constexpr int64_t kStagedBytes = int64_t{64} << 20;

  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;

  virtual const char* name() const = 0;  // torch's or Composer's: "DecoupledAdamW"

  // Updates every parameter that has a gradient. The kernel divides gradients by `grad_scale` (float32
  // scalar; undefined = 1) in place. Does nothing if `found_inf` (float32 scalar, 0 or 1) is not zero.
  // Asserts that gradients have the strides of their parameters.
  //
  // The host waits for a `found_inf` of a device, unless skips_on_device(): then kernels look at it, and
  // whoever learns later that it is not zero calls take_back().
  void step(const at::Tensor& grad_scale = {}, const at::Tensor& found_inf = {});
  virtual bool skips_on_device() const { return false; }
  // The last step has done nothing but count itself: takes its counts back. Gradients are still those of it.
  void take_back();

  // For optimizers that need additional passes. Default: Closure::step.
  virtual void step(Closure& closure) { closure.step(); }

  // The learning rate of the next step; initially base_lr, the recipe's.
  double lr() const { return lr_; }
  double base_lr() const { return common_.lr; }
  void set_lr(double lr) { lr_ = lr; }

  // Sums of squares of "moment", "param" and "update" (the change of the parameter) in the last step, over
  // the rows of a view; empty if the optimizer does not keep enough. The roots are Composer's
  // report_per_parameter_metrics.
  virtual std::vector<std::pair<std::string, ExactSum>> squares(size_t view) const;

  // Number of updates of a view; without argument the maximum over all views.
  int64_t steps(size_t view) const { return steps_.const_data_ptr<int64_t>()[view]; }
  int64_t steps() const;
  // The host waits for what is on its way to it after an update.
  void wait_for_host() const { staged_.synchronize(); }
  // Of the trained parameters. Waits for the host.
  std::vector<OptimizerState> state() const;

  // Call after surgery has replaced the views. `kept`: for each view the index of the earlier view of the
  // same parameter, whose state and weight decay stay; nullopt: a new parameter, with new state. State gets
  // the strides of the parameter. Allocates memory.
  using Kept = std::vector<std::optional<size_t>>;
  void follow(const Kept& kept);

 protected:
  // Parameters updated by one kernel call.
  struct Group {
    double weight_decay = 0.0;
    std::vector<size_t> members;  // indices of views
  };
  // Arguments of a kernel call: the members that have a gradient.
  struct Call {
    double weight_decay = 0.0;
    std::vector<size_t> members;
    std::vector<at::Tensor> tensors;
    std::vector<at::Tensor> grads;
    // On the device: if not zero, the kernel must change nothing. May be undefined.
    at::Tensor found_inf = {};
  };
  using StateTensors = std::vector<at::Tensor>;  // one per view

  // The views must outlive the optimizer. Gradients are read from the views at each step.
  Optimizer(const std::vector<ParamView>& views, Common common);

  // Adds zeros like each trained view's tensor; the reference stays valid.
  StateTensors& add_state(const std::string& name);
  // A view's parameter or state, where updates are computed.
  static at::Tensor in_update(const ParamView& view, const at::Tensor& tensor);
  // steps() already counts the current update.
  virtual void update(Call call, const at::Tensor& grad_scale) = 0;
  // Called when the views were replaced, for subclasses with data per view.
  virtual void views_changed() {}
  const ParamView& view(size_t index) const { return views_[index]; }
  size_t view_count() const { return views_.size(); }
  // For updates with so many lists.
  Elementwise make_elementwise(size_t lists) const;
  double weight_decay_of(size_t view) const;
  // Multiplies tensors by a factor, or by 1 if `found_inf` is defined and not zero.
  static void shrink(const std::vector<at::Tensor>& tensors, double factor, const at::Tensor& found_inf);
  // As an argument of a kernel.
  static std::optional<at::Tensor> given(const at::Tensor& scalar) {
    return scalar.defined() ? std::optional(scalar) : std::nullopt;
  }
  static std::vector<at::Tensor> pick(const StateTensors& tensors, const std::vector<size_t>& members);

 private:
  void count(int64_t updates);
  void update_staged(const Call& call, const at::Tensor& grad_scale);
  void make_staging();
  std::vector<std::vector<at::Tensor*>> kept_on_host(Call& call);
  Call call_of(const Group& group) const;
  bool decays(const ParamView& view) const;
  void make_groups();

  const std::vector<ParamView>& views_;
  Common common_;
  double lr_;
  at::Tensor steps_;          // [views] int64
  std::vector<bool> decays_;  // by view
  std::vector<Group> groups_;
  std::vector<std::pair<std::string, std::unique_ptr<StateTensors>>> states_;
  // On the device, of each state, last of parameters: uint8; empty if nothing is on the host.
  std::vector<at::Tensor> staging_;
  StreamOrder staged_;  // the last update's state is on the host
};

// Makes the optimizer of [optimizer]: sgd, adam, adamw, decoupled_sgdw, decoupled_adamw, or a plugin's.
std::unique_ptr<Optimizer> make_optimizer(const Setting& section, const std::vector<ParamView>& views);

// True if `name` matches `pattern`; * matches any characters.
bool matches_pattern(const std::string& pattern, const std::string& name);

}  // namespace tutti
