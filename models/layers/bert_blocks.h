#pragma once

#include "models/layers/attention.h"
#include "models/layers/layer.h"

namespace tutti {

// Sizes of BERT's blocks.
struct BertBlockOptions {
  int64_t features = 0;
  int64_t heads = 0;
  int64_t intermediate = 0;         // width of the feed-forward block
  std::string activation = "gelu";  // transformers' hidden_act, as make_activation reads it
  double dropout = 0.0;
  double attention_dropout = 0.0;
  double norm_eps = 1e-12;
  double deviation = 0.02;  // of initial weights
};

// A block's output [N, T, features], and the block's input, to be added.
struct Residual {
  at::Tensor output;
  at::Tensor residual;

  static Residual of(const TensorTree& input);  // a tree of "output" and "residual"
  TensorTree tree() const;
};

// LayerNorm(dropout(dense(output)) + residual), over a Residual. "dense" and "LayerNorm" have parameters.
class BertResidualOutput : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override;

 protected:
  BertResidualOutput(int64_t in, const BertBlockOptions& options);

 private:
  Slot& dense_;
  Slot& norm_;
  Slot& dropout_;
};

class BertSelfOutput final : public BertResidualOutput {
 public:
  explicit BertSelfOutput(const BertBlockOptions& options) : BertResidualOutput(options.features, options) {}
  const char* kind() const override { return "BertSelfOutput"; }
};

// The second half of the feed-forward block; GatedLinearUnits replaces this half together with
// BertIntermediate.
class BertOutput final : public BertResidualOutput {
 public:
  explicit BertOutput(const BertBlockOptions& options)
      : BertResidualOutput(options.intermediate, options), options_(options) {}
  const char* kind() const override { return "BertOutput"; }
  const BertBlockOptions& options() const { return options_; }

 private:
  BertBlockOptions options_;
};

// The first half: activation(dense(x)), [N, T, features] to [N, T, intermediate].
class BertIntermediate final : public Layer {
 public:
  explicit BertIntermediate(const BertBlockOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "BertIntermediate"; }
  const std::shared_ptr<Layer>& activation() const { return activation_; }

 private:
  std::shared_ptr<Layer> activation_;
  Slot& dense_;
  Slot& act_;
};

// "self" and "output" of MaskedStates: LayerNorm(projected attention + states).
class BertAttention final : public Layer {
 public:
  explicit BertAttention(const BertBlockOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "BertAttention"; }

 private:
  Slot& self_;
  Slot& output_;
};

// A block of BERT, normalised after each half: MaskedStates to states [N, T, features].
class BertLayer final : public Layer {
 public:
  explicit BertLayer(const BertBlockOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "BertLayer"; }

 private:
  Slot& attention_;
  Slot& intermediate_;
  Slot& output_;
};

// BertLayers "0", "1", ... in a row, with one mask: MaskedStates to states.
class BertLayers final : public Layer {
 public:
  BertLayers(int64_t count, const BertBlockOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "BertLayers"; }
};

}  // namespace tutti
