#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/generation.h"
#include "models/metric.h"
#include "training/metrics/options.h"

namespace tutti {

// A model's answer to a prompt, and the answers that are right. Valid UTF-8, without blanks around.
struct JudgedAnswer {
  std::string text;
  std::vector<std::string> references;
};

// The answers in the outputs of a batch of PromptRows (training/evaluation/answers.h): up to the first of the
// texts that end an answer. Throws UserError if the batch has no references, or `text` is null.
std::vector<JudgedAnswer> judged_answers(const Batch& batch, const Outputs& outputs, const TokenText* text);

// A metric of answers. Its sums are over answers.
class AnswerMetric : public Metric {
 public:
  // How the model's tokens are text; null: they are not. To be called before `measure`.
  void set_text(TokenTextPtr text) { text_ = std::move(text); }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  void measure(Model& model, const Batch& batch, const Outputs& outputs) override;
  void judge(const JudgedAnswer& answer) { count(answer, current()); }

 protected:
  using Metric::Metric;
  virtual void count(const JudgedAnswer& answer, std::span<double> sums) const = 0;

 private:
  TokenTextPtr text_;
};

// Fraction of the answers that are equal to a reference.
class ExactMatch final : public AnswerMetric {
 public:
  explicit ExactMatch(const ExactMatchOptions& options) : options_(options) {}
  std::string name() const override { return "ExactMatch"; }

 private:
  void count(const JudgedAnswer& answer, std::span<double> sums) const override;

  ExactMatchOptions options_;
};

// BLEU of all answers together, 0 to 100: sacrebleu's BLEU() with its tokenizer 13a and smoothing "exp"
// (sacrebleu 2.6.0; Papineni et al. 2002, Post 2018). Sums: equal n-grams of 1 to 4 words, all n-grams of the
// answers, words of the answers, words of the references nearest in length.
class BleuScore final : public AnswerMetric {
 public:
  BleuScore() : AnswerMetric(10) {}
  std::string name() const override { return "BLEU"; }
  double compute() const override;

 private:
  void count(const JudgedAnswer& answer, std::span<double> sums) const override;
};

// chrF2 of all answers together, 0 to 100: sacrebleu's CHRF() (sacrebleu 2.6.0; Popovic 2015). Sums: for
// n-grams of 1 to 6 characters those of the answers, of the references nearest by chrF, and equal ones.
class ChrfScore final : public AnswerMetric {
 public:
  ChrfScore() : AnswerMetric(18) {}
  std::string name() const override { return "CHRF"; }
  double compute() const override;

 private:
  void count(const JudgedAnswer& answer, std::span<double> sums) const override;
};

}  // namespace tutti
