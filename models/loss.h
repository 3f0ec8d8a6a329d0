#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "models/all_ranks.h"
#include "models/loss_options.h"
#include "recipe/setting.h"

namespace tutti {

// The targets that a loss compares with a model's outputs [N, C, ...].
enum class LossTargets {
  kClasses,  // class indices [N, ...], or a probability for each class [N, C, ...]
  kLabels,   // the same, where several classes, or none, may be 1; numbers in [0, 1]
  kValues    // of the outputs' shape
};

// A loss that a recipe chooses. Where the outputs are [N, 1, ...], values and single labels may be [N, ...].
// Targets of another shape throw UserError. On a device the host waits for none but `items`.
class Loss {
 public:
  virtual ~Loss() = default;
  virtual LossTargets targets() const = 0;

  // The mean over `items`, a scalar.
  virtual at::Tensor mean(const at::Tensor& outputs, const at::Tensor& target) const = 0;
  // The loss of each sample, [N].
  virtual at::Tensor of_samples(const at::Tensor& outputs, const at::Tensor& target) const = 0;

  // The weight of `mean` among other batches' means. Default: the number of samples, for a mean over
  // elements, of which all samples have as many.
  virtual double items(const at::Tensor& target) const;

  // See Model::prepare_loss.
  virtual void prepare(c10::Device) const {}

  // See Model::uses_all_ranks and Model::set_ranks.
  virtual bool uses_all_ranks() const { return false; }
  void set_ranks(AllRanks* ranks) const { ranks_.set(ranks); }

  // See Model::takes_dense_targets.
  bool takes_dense_targets() const { return targets() != LossTargets::kValues; }
  // True if class indices that are kIgnoredTarget do not count.
  virtual bool leaves_targets_out() const { return false; }
  // True if outputs must be in [0, 1].
  virtual bool needs_probabilities() const { return false; }
  // The number of classes that the loss has weights of; 0 = any number.
  virtual int64_t classes() const { return 0; }
  // The weights of the classes in `items`, [classes()]; undefined: all weights are 1.
  virtual at::Tensor class_weights(c10::Device) const { return {}; }

 protected:
  AllRanks& ranks() const { return ranks_.get(); }

 private:
  RanksOfPass ranks_;
};

// The cross entropy that classifiers have by default.
LossPtr default_loss();

// Makes a loss of the catalog from a name, with default keys, or from a table such as {kind = "focal",
// gamma = 1.0}, or a plugin's. Throws UserError for unknown names and keys.
LossPtr make_loss(const Setting& chosen);

}  // namespace tutti
