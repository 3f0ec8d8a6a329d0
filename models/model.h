#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/all_ranks.h"
#include "models/generation.h"
#include "models/layers/layer.h"
#include "models/loss.h"
#include "models/metric.h"

namespace tutti {

// Composer's model interface over a Layer. Only `forward` and `loss` have no default.
class Model : public Layer {
 public:
  using Layer::forward;  // takes the whole batch, targets included

  // Mean loss over the batch, a scalar. `loss_weight` says how many items the mean is over.
  virtual at::Tensor loss(const Outputs& outputs, const Batch& batch) = 0;

  // The loss of each sample, [N], for algorithms that select samples (SelectiveBackprop). Default: an empty
  // tensor, no such losses.
  virtual at::Tensor losses(const Outputs&, const Batch&) { return {}; }

  // True if `loss` takes batch["target"] as a weight for each class too, with the shape of the outputs, in
  // place of class indices (MixUp, CutMix, LabelSmoothing).
  virtual bool takes_dense_targets() const { return false; }

  // Number of items (samples or tokens) in the mean of `loss`; weights the gradients and logged losses of
  // microbatches and ranks. A fraction, if items count in part.
  virtual double loss_weight(const Batch& batch) const { return static_cast<double>(batch.samples()); }

  // Outputs for metrics. Given outputs are returned unchanged.
  virtual Outputs eval_forward(const Batch& batch, std::optional<Outputs> outputs = std::nullopt);

  // Names, in the metrics catalog, of the metrics for training or evaluation.
  virtual std::vector<std::string> get_metrics(bool is_train) const;

  // Default: metric.update(outputs as one tensor, batch["target"]).
  virtual void update_metric(const Batch& batch, const Outputs& outputs, Metric& metric);

  // Called before training: copies the loss's tensors beside parameters and buffers to the device.
  virtual void prepare_loss(c10::Device) {}

  // True if `forward` or `loss` computes with the samples that all ranks have in one microbatch: by
  // sum_of_all and rows_of_all (models/all_ranks.h), with ranks(). Then a step cannot be tried again when
  // memory runs out, which ends the run, and every rank needs as many microbatches of each batch: the last
  // steps of an epoch may need drop_last. Comparisons over whole steps are simpler by compares_step.
  virtual bool uses_all_ranks() const { return false; }
  // Sets ranks(): all of the run in a pass of training; null: this rank alone, as in evaluations and
  // predictions, where ranks do not wait for each other. Called by the trainer.
  virtual void set_ranks(AllRanks* ranks) { ranks_.set(ranks); }

  // True if `loss` compares the samples of a whole step, of all microbatches and ranks (contrastive losses),
  // by their rows: models/step_rows.h. Then the step does not depend on ranks and microbatches.
  virtual bool compares_step() const { return false; }
  // The rows by which samples are compared: float32 [N, numbers] of the outputs.
  virtual at::Tensor rows(const Outputs&) { return {}; }

  // Tokens of a batch, for time in tokens.
  virtual int64_t tokens(const Batch&) const { return 0; }

  // Floating-point operations of a training step; 0 = unknown.
  virtual double flops_per_batch(const Batch&) const { return 0; }

  // Tokens of a language model that can generate: 0 to vocabulary() - 1. 0 = cannot generate.
  virtual int64_t vocabulary() const { return 0; }

  // The tokens added to each prompt. Prompts hold tokens below vocabulary(). Does not change gradients, mode
  // or the default generator.
  virtual std::vector<Tokens> generate(const std::vector<Prompt>& prompts, const GenerationOptions& options);

 protected:
  AllRanks& ranks() const { return ranks_.get(); }

 private:
  RanksOfPass ranks_;
};

// Outputs [N, C, ...] of batch["input"], trained against batch["target"] by a loss that the recipe chooses
// (models/loss.h): scores of classes against class indices [N, ...], if nobody says otherwise.
class Classifier : public Model {
 public:
  at::Tensor loss(const Outputs& outputs, const Batch& batch) override;
  at::Tensor losses(const Outputs& outputs, const Batch& batch) override;
  bool takes_dense_targets() const override { return loss_->takes_dense_targets(); }
  void prepare_loss(c10::Device where) override { loss_->prepare(where); }
  bool uses_all_ranks() const override { return loss_->uses_all_ranks(); }
  void set_ranks(AllRanks* ranks) override {
    Model::set_ranks(ranks);
    loss_->set_ranks(ranks);
  }
  double loss_weight(const Batch& batch) const override;
  // Metrics of class indices, or of values; none where the targets are labels.
  std::vector<std::string> get_metrics(bool is_train) const override;

  // `has_labels`: the targets are a number for each class, [N, C, ...], and not class indices.
  void set_loss(LossPtr loss) { loss_ = std::move(loss); }
  void set_labels(bool has_labels) { has_labels_ = has_labels; }
  const Loss& chosen_loss() const { return *loss_; }
  // True if an item may belong to several classes, or to none.
  bool has_several_labels() const { return has_labels_ && loss_->targets() == LossTargets::kLabels; }

 private:
  LossPtr loss_ = default_loss();
  bool has_labels_ = false;
};

// Model::loss. Throws UserError unless the loss is one number: of several, backward would take the sum, and
// logs the first.
at::Tensor mean_loss(Model& model, const Outputs& outputs, const Batch& batch);

// Chooses a classifier's loss by make_loss. Throws UserError for other models, names and keys.
void choose_loss(Model& model, const Setting& loss);

}  // namespace tutti
