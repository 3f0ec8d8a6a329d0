#pragma once

#include <cstdint>
#include <string>

#include "models/model.h"
#include "models/zoo/options.h"

namespace tutti {

// BERT of Devlin et al. 2018: post-norm blocks, learned positions. Parameters have the names, layouts and
// initial values of transformers' classes ("bert.encoder.layer.0.attention.self.query.weight"). `Base`:
// Model, or Classifier for a loss that the recipe chooses.
//
// Input: int64 batch["input_ids"] [N, T], or else batch["input"], T at most `longest_sequence`. Optional, of
// the same shape: batch["attention_mask"], 0 for padding, and batch["token_type_ids"], zeros where absent.
// Target: batch["labels"], or else batch["target"].
template <class Base>
class Bert : public Base {
 public:
  const BertOptions& options() const { return options_; }  // as built, before surgery

  int64_t tokens(const Batch& batch) const override;  // padding counts too
  // Per token: 6 per parameter, and 12 num_hidden_layers hidden_size T for attention (Chowdhery et al., 2022,
  // appendix B).
  double flops_per_batch(const Batch& batch) const override;

 protected:
  explicit Bert(const BertOptions& options) : options_(options) {}
  void count_parameters();  // for flops_per_batch; to be called once all layers are there
  double flops_of(const at::Tensor& tokens) const;  // [N, T]

 private:
  BertOptions options_;
  double parameters_ = 0;
};

// The layers under "bert.", from a batch to states [N, T, hidden_size]; `has_pooler`: to [N, hidden_size].
std::shared_ptr<Layer> bert_trunk(const BertOptions& options, bool has_pooler);

// Scores [N, T, vocab_size] of the token at each place; labels [N, T]. The decoder's weights are the token
// embeddings, its bias is "cls.predictions.bias"; "cls.predictions.decoder" has no entries of its own.
class BertForMaskedLm final : public Bert<Model> {
 public:
  explicit BertForMaskedLm(const BertOptions& options);
  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "BertForMaskedLM"; }

  // Mean cross entropy in nats of the labels that count, which are not kIgnoredTarget.
  at::Tensor loss(const Outputs& outputs, const Batch& batch) override;
  // For each sample the mean over its labels that count; 0 if none counts.
  at::Tensor losses(const Outputs& outputs, const Batch& batch) override;
  double loss_weight(const Batch& batch) const override;
  std::vector<std::string> get_metrics(bool is_train) const override;
  void update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) override;

 private:
  Slot* bert_;
  Slot* cls_;
};

// Outputs [N, num_labels] of whole sequences: scores of classes or labels, or values, by the loss. Targets: a
// class index [N], or a number for each output.
class BertForSequenceClassification final : public Bert<Classifier> {
 public:
  // `classifier_dropout` of the summary; transformers' default is hidden_dropout_prob.
  BertForSequenceClassification(const BertOptions& options, int64_t num_labels, double classifier_dropout);
  TensorTree forward(const Batch& batch) override;
  const char* kind() const override { return "BertForSequenceClassification"; }

  at::Tensor loss(const Outputs& outputs, const Batch& batch) override;
  at::Tensor losses(const Outputs& outputs, const Batch& batch) override;
  double loss_weight(const Batch& batch) const override;
  std::vector<std::string> get_metrics(bool is_train) const override;
  void update_metric(const Batch& batch, const Outputs& outputs, Metric& metric) override;

 private:
  int64_t num_labels_;
  Slot& bert_;
  Slot& dropout_;
  Slot& classifier_;
};

// Checks for `make`. They throw UserErrors with the recipe's line. Requires an int64 mask, if any, of the
// shape of `tokens`.
void require_mask(const Setting& section, const SampleSpec& samples, const std::string& mask,
                  const std::string& tokens);
void require_sizes(const Setting& section, const BertOptions& options);

}  // namespace tutti
