#include "training/metrics/language_cross_entropy.h"

#include <ATen/ATen.h>

#include <cmath>

namespace tutti {

void LanguageCrossEntropy::update(const at::Tensor& outputs, const at::Tensor& target) {
  const at::Tensor rows = outputs.reshape({-1, outputs.size(-1)});
  const at::Tensor tokens = target.reshape(-1);
  sums_[0] += at::cross_entropy_loss(rows, tokens, {}, at::Reduction::Sum, ignore_index_).item<double>();
  sums_[1] += tokens.ne(ignore_index_).sum().item<double>();
}

double LanguageCrossEntropy::compute() const { return sums_[0] / sums_[1]; }

double LanguagePerplexity::compute() const { return std::exp(LanguageCrossEntropy::compute()); }

}  // namespace tutti
