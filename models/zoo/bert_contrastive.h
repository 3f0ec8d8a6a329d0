#pragma once

#include <string>
#include <vector>

#include "models/zoo/bert.h"
#include "models/zoo/options.h"

namespace tutti {

// An encoder of texts, trained by InfoNCE (van den Oord et al., 2018): sentence-transformers'
// MultipleNegativesRankingLoss with cosines and scale 1 / temperature, or its symmetric variant; with
// `simcse` the unsupervised SimCSE of Gao et al., 2021. Names of parameters as of transformers' BertModel
// behind "bert."; there is no pooler.
//
// A sample is a text "input_ids" (or "input"), a text "positive_ids", and maybe a text "negative_ids", all
// int64 [N, T] with lengths of their own, and "attention_mask", "positive_attention_mask" and
// "negative_attention_mask" of their shapes, 0 for padding; types of tokens are zeros. Outputs: embeddings of
// length 1, float32 [N, texts, hidden_size], of a single text [N, hidden_size].
//
// The loss is the mean over all texts of a step (models/step_rows.h) of the cross entropy of the text's own
// positive, among all positives and negatives. Each microbatch computes all similarities of the step.
class BertForContrast final : public Bert<Model> {
 public:
  explicit BertForContrast(const BertContrastiveOptions& options);
  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "BertForContrast"; }

  at::Tensor loss(const Outputs& outputs, const Batch& batch) override;
  bool compares_step() const override { return true; }
  at::Tensor rows(const Outputs& outputs) override { return outputs.tensor().flatten(1); }

  // Of each text of the batch, found among the step's texts: MulticlassAccuracy is recall@1.
  std::vector<std::string> get_metrics(bool is_train) const override;
  void update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) override;

  int64_t tokens(const Batch& batch) const override;
  double flops_per_batch(const Batch& batch) const override;

 private:
  std::vector<std::string> texts_of(const Batch& batch) const;
  std::vector<at::Tensor> embeddings_of(const at::Tensor& rows) const;
  at::Tensor scores_of(const at::Tensor& mine, const at::Tensor& rows) const;

  BertPooling pooling_;
  double temperature_;
  bool symmetric_, simcse_;
  Slot& bert_;
};

}  // namespace tutti
