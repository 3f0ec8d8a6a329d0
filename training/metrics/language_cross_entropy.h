#pragma once

#include "models/metric.h"

namespace tutti {

// Mean cross entropy a token, in nats, of scores [..., vocabulary] against token numbers; tokens of
// `ignore_index` do not count. composer.metrics.LanguageCrossEntropy.
class LanguageCrossEntropy : public Metric {
 public:
  explicit LanguageCrossEntropy(int64_t ignore_index) : ignore_index_(ignore_index) {}
  std::string name() const override { return "LanguageCrossEntropy"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;
  std::vector<double>& sums() override { return sums_; }

 private:
  int64_t ignore_index_;
  std::vector<double> sums_ = {0.0, 0.0};  // cross entropy, tokens
};

// e to it.
class LanguagePerplexity final : public LanguageCrossEntropy {
 public:
  using LanguageCrossEntropy::LanguageCrossEntropy;
  std::string name() const override { return "LanguagePerplexity"; }
  double compute() const override;
};

}  // namespace tutti
