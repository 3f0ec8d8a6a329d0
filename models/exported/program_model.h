#pragma once

#include <string>
#include <vector>

#include "models/model.h"

namespace tutti {

// A classifier that a file's program computes, maybe with its loss. Outputs are the prediction, [N, C, ...]
// with classes in dimension 1, where the program may have them in the last; with a loss of the program's own
// they are "prediction" and "loss".
class ProgramModel : public Classifier {
 public:
  at::Tensor loss(const Outputs& outputs, const Batch& batch) override;
  at::Tensor losses(const Outputs& outputs, const Batch& batch) override;
  bool takes_dense_targets() const override { return !has_loss_ && Classifier::takes_dense_targets(); }
  double loss_weight(const Batch& batch) const override;
  void update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) override;

 protected:
  void set_has_loss() { has_loss_ = true; }
  bool has_loss() const { return has_loss_; }
  // Plans the targets for [model] loss. `prediction`: its sizes a sample; nothing is planned if one is
  // unknown, -1. Throws UserError.
  void plan(const Setting& section, const SampleSpec& samples, Shape prediction);
  // `loss`: if the program computes it.
  TensorTree outputs_of(at::Tensor prediction, at::Tensor loss) const;

 private:
  bool has_loss_ = false;
  bool classes_are_last_ = false;
};

// "'a', 'b'"
std::string quoted_list(const std::vector<std::string>& names);

}  // namespace tutti
