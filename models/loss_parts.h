#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "tensors/tree.h"

namespace tutti {

// Further interfaces of a model: named outputs, and a loss that is a weighted sum of parts.
class LossParts {
 public:
  struct Part {
    std::string name;  // "boxes": logged as loss/train/boxes and metrics/eval/loss/boxes
    double weight = 1.0;
  };
  struct Compared {
    at::Tensor output, target;
  };

  virtual ~LossParts() = default;
  // In the order of part_means. Empty if the loss is not a sum.
  virtual std::vector<Part> loss_parts() const = 0;
  // The mean of each part over the batch, a scalar, without its weight. Model::loss_weight says how many
  // items the means are over.
  virtual std::vector<at::Tensor> part_means(const Outputs& outputs, const Batch& batch) const = 0;
  // A metric's comparison: the output of this name with the batch's array `target`. An empty target means the
  // target of the output's first loss, an empty output the output of the first loss (with the given target,
  // if any). Throws UserError with the existing names.
  virtual Compared compared(const Outputs& outputs, const Batch& batch, const std::string& output,
                            const std::string& target) const = 0;
};

}  // namespace tutti
