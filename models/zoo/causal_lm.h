#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"

namespace tutti {

// A language model that predicts the next tokens. Input: integers batch["input"] [N, T]. Outputs: scores [N,
// T, vocabulary]. Target: batch["target"] [N, T], the next token or kIgnoredTarget.
class CausalLm : public Model {
 public:
  // Mean cross entropy per token in nats, without ignored tokens.
  at::Tensor loss(const Outputs& outputs, const Batch& batch) override;
  at::Tensor losses(const Outputs& outputs, const Batch& batch) override;  // means over a sample's tokens
  double loss_weight(const Batch& batch) const override;  // tokens; of a batch with "pairs", the pairs
  std::vector<std::string> get_metrics(bool is_train) const override;
  int64_t tokens(const Batch& batch) const override;

 protected:
  // The batch's input, a leaf; or, for a batch with "segments" and "positions", a tree of the three.
  static TensorTree tokens_of(const Batch& batch);
};

// The places of CausalLm::tokens_of in their rows or documents, int64 [T] or [N, T]; in a pass of generation
// the cache's places.
at::Tensor positions_of(const TensorTree& tokens, const KeyCache* cache);

}  // namespace tutti
