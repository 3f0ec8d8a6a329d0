#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "recipe/setting.h"
#include "tensors/device.h"
#include "tensors/elementwise.h"
#include "tensors/norms.h"
#include "tensors/param_view.h"
#include "training/optimizers/closure.h"
#include "training/optimizers/parameter_groups.h"

namespace tutti {

// A state tensor at a fixed address, which a checkpoint reads and a restore writes.
struct OptimizerState {
  const ParamView* view = nullptr;  // the parameter of the state
  std::string name;                 // torch.optim's: "momentum_buffer", "exp_avg", "step"
  at::Tensor tensor;                // "step" is an int64 scalar
  Shape shape;                      // of the state of the whole parameter
  Placement placement;              // of that state on the ranks
};

// Updates parameters with libtorch's fused kernels. State that views keep on the host is copied to the device
// for each update, kStagedBytes of parameters at a time, and back, in the order of the device's work. All
// memory is allocated in the constructor; an update allocates only scalars, because updates cannot be undone.
// Not thread-safe.
class Optimizer {
 public:
  using Common = OptimizerCommon;

  static constexpr int64_t kStagedBytes = int64_t{64} << 20;

  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;

  virtual const char* name() const = 0;  // torch's or Composer's: "DecoupledAdamW"

  // Updates every parameter that has a gradient. The kernel divides gradients by `grad_scale` (float32
  // scalar; undefined = 1) in place. No parameter changes if `found_inf` (float32 scalar, 0 or 1) is not
  // zero. Asserts that gradients have the strides of their parameters.
  //
  // The host waits for a `found_inf` of a device, unless skips_on_device(): then kernels look at `found_inf`,
  // and the caller that later reads a value other than zero calls take_back().
  void step(const at::Tensor& grad_scale = {}, const at::Tensor& found_inf = {});
  virtual bool skips_on_device() const { return false; }
  // The last step has only been counted: takes its counts back. Gradients are still the step's.
  void take_back();

  // For optimizers that need additional passes. Default: Closure::step.
  virtual void step(Closure& closure) { closure.step(); }

  // The learning rate of the next step; initially base_lr, the recipe's.
  double lr() const { return lr_; }
  double base_lr() const { return common_.lr; }
  void set_lr(double lr) { lr_ = lr; }
  // The learning rate of each group of parameters, as of torch's param_groups: first of parameters in no
  // [[optimizer.groups]], then of the groups; with layer_decay a rate for each layer, from the last.
  std::vector<double> group_lrs() const;

  // Sums over the ranks that have rows of the same parameters; empty: every view is whole. Needed before the
  // first step by optimizers that look at whole parameters. All ranks then step alike. Allocates memory.
  void set_sum_over_shards(SumOverRanks sum);

  // Sums of squares of "moment", "param" and "update" (the change of the parameter) in the last step, over
  // the rows of a view; empty if the optimizer does not keep enough. The roots are Composer's
  // report_per_parameter_metrics.
  virtual std::vector<std::pair<std::string, ExactSum>> squares(size_t view) const;

  // Number of updates of a view; without argument the maximum over all views.
  int64_t steps(size_t view) const { return steps_.const_data_ptr<int64_t>()[view]; }
  int64_t steps() const;
  // The host waits for the copies to the host after an update.
  void wait_for_host() const { staged_.synchronize(); }
  // Of the trained parameters. Waits for the host.
  std::vector<OptimizerState> state() const;

  // Call after surgery has replaced the views. `kept`: for each view the index of the earlier view of the
  // same parameter, whose state, group and weight decay stay; nullopt: a new parameter, with new state. State
  // gets the strides of the parameter. Allocates memory.
  using Kept = std::vector<std::optional<size_t>>;
  void follow(const Kept& kept);

 protected:
  // Parameters updated by one kernel call.
  struct Group {
    double weight_decay = 0.0;
    std::vector<size_t> members;  // indices of views
    double lr_scale = 1.0;
  };
  // Arguments of a kernel call: the members that have a gradient.
  struct Call {
    double weight_decay = 0.0;
    std::vector<size_t> members;
    std::vector<at::Tensor> tensors;
    std::vector<at::Tensor> grads;
    // On the device: if not zero, the kernel must not change any number. May be undefined.
    at::Tensor found_inf = {};
    double lr_scale = 1.0;  // of the members, by lr() and by base_lr()
  };
  using StateTensors = std::vector<at::Tensor>;  // one per view
  struct StateSizes {
    // The dimension over which the state is a mean, and which has size 1; nullopt: the view's sizes, in the
    // view's order in memory.
    std::optional<int64_t> mean_dim = {};
  };
  // nullopt: the view has no such state.
  using SizesOf = std::function<std::optional<StateSizes>(const ParamView& view)>;

  // The views must outlive the optimizer. Gradients are read from the views at each step.
  Optimizer(const std::vector<ParamView>& views, Common common);

  // Adds a tensor of `value` for each trained view, by default like the view's; the reference stays valid.
  StateTensors& add_state(const std::string& name, double value = 0.0, SizesOf sizes_of = {});
  // A view's parameter or state, where updates are computed.
  static at::Tensor in_update(const ParamView& view, const at::Tensor& tensor);
  // steps() already counts the current update.
  virtual void update(Call call, const at::Tensor& grad_scale) = 0;
  // True if updates use sum_over_shards. All ranks then make the same calls, with members of no rows too.
  virtual bool sums_over_shards() const { return false; }
  const SumOverRanks& sum_over_shards() const { return sum_over_shards_; }
  // Called when the views were replaced, or got sum_over_shards(), for subclasses with data per view.
  virtual void views_changed() {}
  const ParamView& view(size_t index) const { return views_[index]; }
  size_t view_count() const { return views_.size(); }
  // For updates with so many lists.
  Elementwise make_elementwise(size_t lists) const;
  double lr_of(const Call& call) const { return lr_ * call.lr_scale; }
  const ParameterRates& rates_of(size_t view) const { return rates_[view]; }
  // Multiplies tensors by a factor, or by 1 if `found_inf` is defined and not zero.
  static void shrink(const std::vector<at::Tensor>& tensors, double factor, const at::Tensor& found_inf);
  // As an argument of a kernel.
  static std::optional<at::Tensor> given(const at::Tensor& scalar) {
    return scalar.defined() ? std::optional(scalar) : std::nullopt;
  }
  static std::vector<at::Tensor> pick(const StateTensors& tensors, const std::vector<size_t>& members);

 private:
  void count(int64_t updates);
  struct NamedState {
    std::string name;
    std::unique_ptr<StateTensors> tensors;
    double value;
    SizesOf sizes_of;
  };
  static at::Tensor new_state(const ParamView& view, double value, const StateSizes& sizes);
  static at::Tensor like_view(const at::Tensor& state, const ParamView& view);
  static at::Tensor fresh_state(const NamedState& state, const ParamView& view);
  void update_staged(const Call& call, const at::Tensor& grad_scale);
  int64_t staged_bytes(const ParamView& view) const;
  void make_staging();
  std::vector<std::vector<at::Tensor*>> kept_on_host(Call& call);
  Call call_of(const Group& group) const;
  void make_groups();

  const std::vector<ParamView>& views_;
  Common common_;
  double lr_;
  at::Tensor steps_;                   // [views] int64
  std::vector<ParameterRates> rates_;  // by view
  std::vector<Group> groups_;
  std::vector<double> group_scales_;  // of group_lrs
  std::vector<NamedState> states_;
  SumOverRanks sum_over_shards_;
  // On the device, of each state, last of parameters: uint8; empty if no state is on the host.
  std::vector<at::Tensor> staging_;
  StreamOrder staged_;  // the last update's state is on the host
};

// Makes the optimizer of [optimizer]: sgd, adam, adamw, decoupled_sgdw, decoupled_adamw, or a plugin's.
std::unique_ptr<Optimizer> make_optimizer(const Setting& section, const std::vector<ParamView>& views);

}  // namespace tutti
