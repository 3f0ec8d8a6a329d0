#pragma once

#include "data/dataset.h"

namespace tutti {

// Tensors in memory, side by side: row i of each is sample i. torch.utils.data.TensorDataset.
class TensorDataset final : public Dataset {
 public:
  // Integer targets lie below `classes`; 0 = there are none. Throws UserError where a tensor has no rows, or
  // not as many as the others.
  explicit TensorDataset(TensorTree tensors, int64_t classes = 0);

  int64_t size() const override { return tensors_.samples(); }
  SampleSpec spec() const override;
  Batch get(std::span<const int64_t> indices) const override;
  uint64_t digest() const override { return digest_; }  // of every value

 private:
  TensorTree tensors_;
  int64_t classes_;
  uint64_t digest_ = 0;
};

}  // namespace tutti
