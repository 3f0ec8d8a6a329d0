#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/generation.h"
#include "models/layers/layer.h"
#include "models/metric.h"

namespace tutti {

// What is trained: Composer's model interface over a Layer. Only `forward` and `loss` have no default.
class Model : public Layer {
 public:
  using Layer::forward;

  // TensorTree forward(const Batch& batch): the whole batch goes in, targets included.

  // Mean over the batch's samples (or tokens), a scalar: what `loss_weight` says it is a mean over.
  virtual at::Tensor loss(const Outputs& outputs, const Batch& batch) = 0;

  // How many things `loss` is a mean over; gradients and logged losses of microbatches and ranks are weighted
  // by it.
  virtual int64_t loss_weight(const Batch& batch) const { return batch.samples(); }

  // Outputs for metrics; given outputs are returned unchanged.
  virtual Outputs eval_forward(const Batch& batch, std::optional<Outputs> outputs = std::nullopt);

  // The metrics (names of the metrics catalog) kept over training or evaluation.
  virtual std::vector<std::string> get_metrics(bool is_train) const;

  // Default: metric.update(outputs as one tensor, batch["target"]).
  virtual void update_metric(const Batch& batch, const Outputs& outputs, Metric& metric);

  // Tokens of a batch, for time in tokens; default 0.
  virtual int64_t tokens(const Batch&) const { return 0; }

  // Floating-point operations of a training step on a batch; default 0: not known.
  virtual double flops_per_batch(const Batch&) const { return 0; }

  // What there is to read at the end of a run: a language model's text of its own, the same for the same
  // seed. Default "": nothing.
  virtual std::string closing_text(uint64_t) { return ""; }

  // Of a language model that writes: how many tokens it knows, 0 to vocabulary() - 1. Default 0: it writes
  // nothing, and is not asked to.
  virtual int64_t vocabulary() const { return 0; }

  // What it adds to each prompt, whose tokens it knows. Leaves gradients, mode and the default generator as
  // they are.
  virtual std::vector<Tokens> generate(const std::vector<Prompt>& prompts, const GenerationOptions& options);
};

// A model that gives one score a class, [N, classes], for batch["input"] and is trained by cross entropy
// against batch["target"] [N].
class Classifier : public Model {
 public:
  at::Tensor loss(const Outputs& outputs, const Batch& batch) override;
  std::vector<std::string> get_metrics(bool is_train) const override;
};

}  // namespace tutti
