#include "models/zoo/causal_lm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include "models/layers/key_cache.h"
#include "models/losses.h"

namespace tutti {

at::Tensor CausalLm::loss(const Outputs& outputs, const Batch& batch) {
  const at::Tensor& scores = outputs.tensor();
  return index_cross_entropy(scores.view({-1, scores.size(-1)}), batch["target"].reshape(-1));
}

at::Tensor CausalLm::losses(const Outputs& outputs, const Batch& batch) {
  const at::Tensor& target = batch["target"];
  const at::Tensor losses =
      index_cross_entropy(outputs.tensor().transpose(1, 2), target, LossReduction::kNone);
  return losses.sum(1) / target.ne(kIgnoredTarget).sum(1).clamp_min(1);
}

double CausalLm::loss_weight(const Batch& batch) const {
  if (const TensorTree* pairs = batch.find("pairs")) return static_cast<double>(pairs->tensor().numel());
  return batch["target"].ne(kIgnoredTarget).sum().item<double>();
}

// In training, LanguageCrossEntropy would repeat the loss.
std::vector<std::string> CausalLm::get_metrics(bool is_train) const {
  return is_train ? std::vector<std::string>() : std::vector<std::string>{"LanguageCrossEntropy"};
}

int64_t CausalLm::tokens(const Batch& batch) const { return batch["input"].numel(); }

TensorTree CausalLm::tokens_of(const Batch& batch) {
  if (!batch.find("segments")) return batch.at("input");
  return TensorTree::Children{
      {"input", batch["input"]}, {"segments", batch["segments"]}, {"positions", batch["positions"]}};
}

at::Tensor positions_of(const TensorTree& input, const KeyCache* cache) {
  if (cache) return cache->positions(input.is_leaf() ? input.tensor() : input["input"]);
  if (!input.is_leaf()) return input["positions"];
  const at::Tensor& tokens = input.tensor();
  return at::arange(tokens.size(1), at::TensorOptions(at::kLong).device(tokens.device()));
}

}  // namespace tutti
