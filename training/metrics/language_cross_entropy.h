#pragma once

#include "models/metric.h"

namespace tutti {

// Mean cross entropy a token, in nats, of scores [..., vocabulary] against token numbers; tokens of kIgnored
// do not count. composer.metrics.LanguageCrossEntropy.
class LanguageCrossEntropy : public Metric {
 public:
  static constexpr int64_t kIgnored = -100;

  std::string name() const override { return "LanguageCrossEntropy"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;
  std::vector<double>& sums() override { return sums_; }

 private:
  std::vector<double> sums_ = {0.0, 0.0};  // cross entropy, tokens
};

// e to it.
class LanguagePerplexity final : public LanguageCrossEntropy {
 public:
  std::string name() const override { return "LanguagePerplexity"; }
  double compute() const override;
};

}  // namespace tutti
