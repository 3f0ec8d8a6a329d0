#pragma once

#include <optional>
#include <string>
#include <vector>

#include "training/optimizers/in_parts.h"
#include "training/optimizers/optimizer.h"

namespace tutti {

// An optimizer whose update is written with ATen's operators, for parts of the parameters.
class PartwiseOptimizer : public Optimizer {
 protected:
  using Optimizer::Optimizer;

  // In the constructor of a subclass: its state, then its scratch. `by_rows`: as InParts. `states`: the most
  // states of a run; by default the states of add_list.
  StateTensors& add_list(const std::string& name, double value = 0.0, const SizesOf& sizes_of = {});
  void add_scratch(size_t count, bool by_rows = false, size_t states = 0);

  // Updates the part of a view. Lists: the parameter, its gradient, which is divided by grad_scale, then the
  // states in the order of add_list.
  virtual void update_part(const InParts::Part& part, const Call& call, size_t view) = 0;

  void update(Call call, const at::Tensor& grad_scale) override;
  void views_changed() override;
  // Runs a kernel over the parts of the call's members, with the lists of update_part, or of other states.
  void run(const Call& call, const InParts::Kernel& kernel) { run(call, lists_, kernel); }
  void run(const Call& call, const std::vector<const StateTensors*>& states, const InParts::Kernel& kernel);
  // The gradient that is descended, with `decay` times the weight: the part's own, or in `scratch`.
  static at::Tensor descended(const InParts::Part& part, double decay, bool maximize,
                              const at::Tensor& scratch);
  static void divide(const at::Tensor& grad, const at::Tensor& grad_scale) {
    if (grad_scale.defined()) at::Tensor(grad).div_(grad_scale);
  }

 private:
  std::vector<const StateTensors*> lists_;
  size_t scratch_ = 0;
  bool by_rows_ = false;
  size_t states_ = 0;
  std::optional<InParts> parts_;
};

}  // namespace tutti
