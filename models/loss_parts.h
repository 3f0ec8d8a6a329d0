#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "tensors/tree.h"

namespace tutti {

// What a model may be beside Model: one with named outputs, and with a loss that is a weighted sum of parts.
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
  // What a metric compares: the output of this name with the batch's array `target`. An empty target is that
  // of the first loss of the output, an empty output that of the first loss, with this target if it is given.
  // Throws UserError with the names that there are.
  virtual Compared compared(const Outputs& outputs, const Batch& batch, const std::string& output,
                            const std::string& target) const = 0;
};

}  // namespace tutti
