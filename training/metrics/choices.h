#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "models/metric.h"
#include "training/metrics/options.h"

namespace tutti {

// The log-probability of each choice of a batch of ChoiceRows behind its question, float64 [N], of scores [N,
// L, vocabulary]: the sum over the choice's tokens. Throws UserError if the batch has no choices.
at::Tensor choice_log_probabilities(const at::Tensor& scores, const Batch& batch);

// Fraction of the questions (data/texts/choice_rows.h) whose right choice has the highest log-probability,
// divided by the choice's length if `length` is given; of equal choices the first counts. lm-eval's acc,
// acc_norm and acc_bytes. Questions without all their choices are left out. Sums: for each choice its numbers
// of "choice", and the log-probability; the first number is 0 where there is none.
class ChoiceAccuracy final : public Metric {
 public:
  ChoiceAccuracy(std::string name, ChoiceLength length)
      : Metric(0), name_(std::move(name)), length_(length) {}

  std::string name() const override { return name_; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  void measure(Model& model, const Batch& batch, const Outputs& outputs) override;
  bool keeps_measurements() const override { return true; }
  void gather(const SumOverRanks& sum, int rank, int world) override;
  double compute() const override;
  std::string note() const override;
  void reset() override;

 private:
  struct Counts {
    int64_t questions = 0, right = 0, left_out = 0;
  };
  void take(std::size_t sum, std::span<const double> all) override;
  Counts counts() const;

  std::string name_;
  ChoiceLength length_;
};

}  // namespace tutti
